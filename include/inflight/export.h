/* Exports: a run in the file formats of other tools, so that scripts for those read it. */
#ifndef INFLIGHT_EXPORT_H
#define INFLIGHT_EXPORT_H

#include "inflight/error.h"
#include "inflight/trace.h"

struct ifl_bench_export {
    const struct ifl_trace *trace; /* with outcomes and stamps; rows in order of arrival */
    const char *dir;               /* of the run, for its quantiles.csv; NULL: without */
    const char *model;             /* UTF-8; NULL: none is named */
    double rate_rps, burstiness;   /* of the arrivals; INFINITY: all at once; NAN: not drawn */
    int32_t concurrency;           /* of a closed loop, else 0 */
    const char *backend;           /* that was measured; NULL: "inflight", a simulated run */
};

/* Writes the JSON of `vllm bench serve --save-detailed` to `path`: one object, in its units, with
 * an entry a request in input_lens, output_lens, ttfts, itls, start_times and errors. Requests that
 * did not finish are listed as failed. Where the trace has no gaps, as of a simulated run, itls
 * repeats the mean gap of the request, and itls_are_means says so. The aggregates of ITL are exact;
 * without a quantiles.csv its quantiles are null. A failed write is IFL_E_IO. After an error `path`
 * is as it was before. */
int ifl_export_bench(const struct ifl_bench_export *export, const char *path,
                     struct ifl_error *error);

#endif
