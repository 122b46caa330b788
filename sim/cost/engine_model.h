/* The shape of a model as engines take it. */
#ifndef SIM_COST_ENGINE_MODEL_H
#define SIM_COST_ENGINE_MODEL_H

#include "inflight/engine.h"

#include "cost/model.h"

/* Describes the model for an engine. Returns the code of `error` if the model is no Llama-style
 * decoder. */
int engine_describe_model(const struct model *model, struct ifl_engine_model *described,
                          struct ifl_error *error);

#endif
