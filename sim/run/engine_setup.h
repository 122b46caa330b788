/* From a configuration to an engine that is open and waits for steps. */
#ifndef SIM_ENGINE_SETUP_H
#define SIM_ENGINE_SETUP_H

#include "config/config.h"
#include "cost/model.h"
#include "executor_engine.h"

struct engine_setup {
    const struct config *config;
    const struct model *model;
    struct ifl_limits limits;
    size_t n_requests;
    int32_t max_samples;        /* sequences of a request */
    const struct kv_pool *pool; /* the device's */
    const volatile sig_atomic_t *stop;
    struct ifl_notes notes; /* about the checkpoint */
};

/* The shape of a model as engines take it. An error if the model is no Llama-style decoder. */
int engine_describe_model(const struct model *model, struct ifl_engine_model *described,
                          struct ifl_error *error);

/* A data type by its name; false if there is none of that name. */
bool engine_dtype_named(const char *name, enum ifl_engine_dtype *dtype);
/* Names of the data types that an executor (cpu, cuda) takes, as an error lists them; for another
 * executor, of all. */
const char *engine_dtype_names(const char *executor);

/* NULL and an error if the module is missing, if it does not run the model, or without memory. */
struct executor_engine *engine_set_up(const struct engine_setup *setup, struct ifl_error *error);

#endif
