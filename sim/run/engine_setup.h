/* From a configuration to an engine that is open and waits for steps. */
#ifndef SIM_RUN_ENGINE_SETUP_H
#define SIM_RUN_ENGINE_SETUP_H

#include "config/config.h"
#include "cost/model.h"
#include "run/adapter_table.h"
#include "run/executor_engine.h"

struct engine_setup {                        /* of a replica */
    const struct config *config;             /* of its pool */
    const struct model *model, *draft_model; /* the latter where a draft model guesses */
    const struct stages *stages;
    struct ifl_limits limits;
    size_t n_requests;
    int32_t max_samples;        /* sequences of a request */
    bool gives_up;              /* requests may give up K/V, as config->serving.kv.keep says */
    const struct kv_pool *pool; /* the device's */
    const struct adapter_table *adapters;
    char *const *adapter_names; /* [adapters->n] */
    const volatile sig_atomic_t *stop;
    const struct source *source; /* of executor_engine_options */
    struct ifl_notes notes;      /* about the checkpoint */
    bool hands_over;             /* K/V moves between replicas */
    size_t n_places;             /* of the tier below its device, for a block each */
};

/* An engine for each of the replicas 0 to n - 1. NULL and an error if the module is missing, if it
 * does not run the model, or without memory. */
struct executor_engine *engine_set_up(const struct engine_setup *setups, uint32_t n,
                                      struct ifl_error *error);

#endif
