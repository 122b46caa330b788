/* LoRA adapters as S-LoRA serves them: all are open at once, and one step mixes sequences of any.
 */
#include <inflight/engine.h>

int lora_open(const struct ifl_engine *engine, const struct ifl_engine_options *base,
              const int32_t *ranks, int32_t n_adapters, void **self, struct ifl_error *error)
{
    struct ifl_engine_options options = *base;
    options.adapter_ranks = ranks;
    options.n_adapters = n_adapters;
    options.adapter_matrices = IFL_ADAPTER_QKVO;
    return engine->open(&options, self, error); /* an engine without adapters says so here */
}

/* Adapters from 0 on in a trace, -1 for none; an engine counts from 1. */
int lora_step(const struct ifl_engine *engine, void *self, struct ifl_engine_step *step,
              const int32_t *traced, int32_t *adapters, struct ifl_error *error)
{
    for (int32_t i = 0; i < step->n_seqs; i++)
        adapters[i] = traced[i] + 1;
    step->adapters = adapters;
    return engine->step(self, step, error);
}
