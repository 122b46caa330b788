/* The modules of a replica by the hooks that they have, and by the questions that they answer. */
#ifndef SIM_REPLICA_LISTENERS_H
#define SIM_REPLICA_LISTENERS_H

#include "replica/module.h"

/* Modules that have a certain hook, in order of their kinds, as indices into the replica's modules.
 * Pointers would take eight times the memory, and each plan reads the list. */
struct listener_list {
    uint8_t n, of[N_MODULES];
};

/* A module whose `steady` limits promises: of the plans that have asked it, or of all plans. */
struct bound {
    const struct module *module;
    unsigned asked; /* it limits the plans with one of these bits in step->asked */
};

struct listeners {
    const struct module *modules; /* [N_MODULES], borrowed */
    struct listener_list join, start, undo, preempt, step_start, step_end, leave;
    struct listener_list admission; /* the admit modules, in the order in which they are asked */
    bool has_ahead; /* the preempt module has `ahead`, to be asked after each plan */
    uint32_t n_bounds;
    struct bound bounds[N_MODULES]; /* in order of their kinds */
};

static inline void listeners_create(struct listeners *on, const struct module *modules)
{
    *on = (struct listeners){.modules = modules};
}
/* Adds the module, which must be one of `modules`, to the list of each hook that it has. */
void listeners_add(struct listeners *on, const struct module *module);

/* The body may not `break`. */
#define FOR_EACH_LISTENER(module, on, list)                                                        \
    for (unsigned at_ = 0; at_ < (list)->n; at_++)                                                 \
        for (const struct module *module = (on)->modules + (list)->of[at_]; module; module = NULL)

#endif
