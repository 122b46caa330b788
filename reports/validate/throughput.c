/* Throughput over the pairs, from the first arrival to the last token. */
#include "validate/findings.h"

#include "inflight/minmax.h"

static double duration_s(const struct pairs *pairs, enum side side)
{
    int64_t first_ns = IFL_NEVER, last_ns = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        const int64_t arrival_ns = pairs_arrival_ns(pairs, side, i);
        const int64_t finish_ns = pairs_finish_ns(pairs, side, i);
        first_ns = ifl_min(first_ns, arrival_ns);
        last_ns = ifl_max(last_ns, finish_ns);
    }
    return ifl_s_from_ns(last_ns - first_ns);
}

int find_throughput(const struct pairs *pairs, struct findings *findings, struct ifl_error *error)
{
    const double simulated_s = duration_s(pairs, SIMULATED);
    const double measured_s = duration_s(pairs, MEASURED);
    double n_output = 0;
    for (size_t i = 0; i < pairs->n; i++)
        n_output += pairs->trace[MEASURED]->n_output[pairs->of[i].row[MEASURED]];
    const double n = (double)pairs->n;
    int rc =
        findings_add(findings, "duration_s", "value", pairs->n, simulated_s, measured_s, error);
    if (rc == IFL_OK)
        rc = findings_add(findings, "request_throughput_rps", "value", pairs->n, n / simulated_s,
                          n / measured_s, error);
    if (rc == IFL_OK)
        rc = findings_add(findings, "output_throughput_tok_per_s", "value", pairs->n,
                          n_output / simulated_s, n_output / measured_s, error);
    return rc;
}
