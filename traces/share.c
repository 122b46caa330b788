/* Gives the prompts of a trace that have no prefix group a shared prefix. */
#include "inflight/minmax.h"
#include "traces.h"

#include <stdlib.h>

static uint32_t last_group(const struct ifl_trace *trace)
{
    uint32_t last = 0;
    for (size_t i = 0; i < trace->n; i++)
        if (trace->prefix_group[i] > last)
            last = trace->prefix_group[i];
    return last;
}

int ifl_trace_share_prefix(struct ifl_trace *trace, int32_t n_tokens, struct ifl_error *error)
{
    ifl_assert(trace_has_lengths(trace));
    if (!trace->prefix_group)
        trace->prefix_group = calloc(trace->n, sizeof *trace->prefix_group);
    if (!trace->prefix_tokens)
        trace->prefix_tokens = calloc(trace->n, sizeof *trace->prefix_tokens);
    if (!trace->prefix_group || !trace->prefix_tokens)
        return ifl_fail_nomem(error);
    const uint32_t group = last_group(trace) + 1;
    for (size_t i = 0; i < trace->n; i++)
        if (trace->prefix_group[i] == 0) {
            trace->prefix_group[i] = group;
            trace->prefix_tokens[i] = ifl_min(n_tokens, trace->n_prompt[i]);
        }
    return 0;
}
