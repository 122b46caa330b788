/* Adapters for the rows of a trace: keyed draws from a power law. */
#include "traces.h"

#include <math.h>
#include <stdlib.h>

#include "inflight/random.h"

enum { MAX_ADAPTERS = 1 << 20 };

static int check(const struct ifl_adapter_spec *spec, struct ifl_error *error)
{
    if (spec->n < 1 || spec->n > MAX_ADAPTERS)
        return ifl_fail(error, IFL_E_INPUT, "%u adapters, expected 1 to %d", spec->n, MAX_ADAPTERS);
    if (!(spec->alpha > 0 && spec->alpha <= 1000))
        return ifl_fail(error, IFL_E_INPUT,
                        "the adapters' alpha is %g, expected a number above 0, at most 1000",
                        spec->alpha);
    return 0;
}

static int name_all(struct ifl_trace *trace, uint32_t n, struct ifl_error *error)
{
    trace->adapter_names = calloc((size_t)n + 1, sizeof *trace->adapter_names);
    if (!trace->adapter_names)
        return ifl_fail_nomem(error);
    trace->n_adapters = n;
    for (uint32_t i = 0; i < n; i++) {
        trace->adapter_names[i] = malloc(16);
        if (!trace->adapter_names[i])
            return ifl_fail_nomem(error);
        snprintf(trace->adapter_names[i], 16, "%u", i);
    }
    return 0;
}

int ifl_trace_adapt(struct ifl_trace *trace, uint64_t seed, const struct ifl_adapter_spec *spec,
                    struct ifl_error *error)
{
    ifl_assert(!trace->adapter);
    if (check(spec, error) < 0 || trace_column_resize(trace, TRACE_ADAPTER, trace->n, error) < 0 ||
        name_all(trace, spec->n, error) < 0)
        return error->code;
    for (size_t i = 0; i < trace->n; i++) {
        const double u = ifl_uniform(ifl_draw(seed, IFL_DRAW_ADAPTER, i, 0));
        const double at = (double)spec->n * pow(u, 1 / spec->alpha);
        trace->adapter[i] = at < spec->n ? (uint32_t)at + 1 : spec->n;
    }
    return 0;
}
