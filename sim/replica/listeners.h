/* Which modules of a replica have which hook, and which are asked about what. */
#ifndef SIM_REPLICA_LISTENERS_H
#define SIM_REPLICA_LISTENERS_H

#include "replica/module.h"

struct listener_list { /* modules that have a certain hook, in order of their kinds */
    const struct module *of[N_MODULES];
    size_t n;
};

/* A module that limits the promises of the plans that have asked it, or of all plans. */
struct bound {
    const struct module *module;
    unsigned asked; /* it limits those with one of these bits in step->asked */
};

struct listeners {
    struct listener_list join, start, undo, preempt, step_start, step_end, leave;
    struct listener_list admission; /* the admit modules, in the order in which they are asked */
    struct bound bounds[N_MODULES]; /* in order of their kinds */
    size_t n_bounds;
    bool has_ahead; /* the preempt module has `ahead`, to be asked after each plan */
};

/* Lists the module with the hooks that it has. */
void listeners_add(struct listeners *on, const struct module *module);

#define FOR_EACH_LISTENER(module, listeners)                                                       \
    for (const struct module *const *at_ = (listeners)->of, *const *end_ = at_ + (listeners)->n,   \
                                    *module;                                                       \
         at_ < end_ && (module = *at_, true); at_++)

#endif
