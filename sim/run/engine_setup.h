/* Opens engines for the replicas of a configuration. */
#ifndef SIM_RUN_ENGINE_SETUP_H
#define SIM_RUN_ENGINE_SETUP_H

#include "config/config.h"
#include "cost/model.h"
#include "run/adapter_table.h"
#include "run/executor_engine.h"

struct engine_setup {                        /* what the engine of one replica needs */
    const struct config *config;             /* configuration of its pool */
    const struct model *model, *draft_model; /* draft_model: if a draft model guesses */
    const struct stages *stages;
    struct ifl_limits limits;
    size_t n_requests;
    int32_t max_samples;        /* sequences of a request */
    bool gives_up;              /* requests may give up K/V, as config->serving.kv.keep says */
    const struct kv_pool *pool; /* K/V pool of the device */
    const struct adapter_table *adapters;
    char *const *adapter_names; /* [adapters->n] */
    const volatile sig_atomic_t *stop;
    const struct source *source; /* as in executor_engine_options */
    struct ifl_notes notes;      /* about the checkpoint */
    bool hands_over;             /* K/V moves between replicas */
    size_t n_places;             /* places of the tier below its device, one block each */
};

/* Opens an engine for each of the replicas 0 to n - 1. Returns NULL, with `error` set, if the
 * module is missing, if it does not run the model, or if memory is short. */
struct executor_engine *engine_set_up(const struct engine_setup *setups, uint32_t n,
                                      struct ifl_error *error);

#endif
