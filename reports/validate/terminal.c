/* The findings of a validation as a table for a terminal. */
#include <math.h>

#include "validate/findings.h"

/* Tolerated, because recordings round their time stamps. */
#define MOST_APART_S 0.01

/* A request that arrives at another time shares its steps with other requests, and the runs cannot
 * be compared; turns and closed loops, which wait for answers, are the exception. */
static void print_arrivals(FILE *out, const struct pairs *pairs)
{
    const double apart_s = ifl_s_from_ns(pairs_arrivals_apart_ns(pairs));
    if (apart_s > MOST_APART_S)
        fprintf(out,
                "arrivals   up to %.4g s apart: expected those of the recording, workload.arrivals "
                "{process: trace}\n",
                apart_s);
}

static void print_pairs(FILE *out, const struct ifl_validation *v, const struct pairs *pairs)
{
    fprintf(out, "simulated  %s: %zu requests\n", v->simulated.name, v->simulated.trace->n);
    fprintf(out, "measured   %s: %zu requests\n", v->measured.name, v->measured.trace->n);
    fprintf(out, "paired     %zu by %s", pairs->n,
            pairs->by_id ? "request_id" : "order of arrival and lengths");
    if (pairs->n_all > pairs->n)
        fprintf(out, ", those of part %llu/%llu; %zu not judged", (unsigned long long)v->part,
                (unsigned long long)v->n_parts, pairs->n_all - pairs->n);
    if (pairs->n_unfinished)
        fprintf(out, "; %zu unfinished on a side", pairs->n_unfinished);
    if (pairs->n_alone[SIMULATED] + pairs->n_alone[MEASURED])
        fprintf(out, "; %zu simulated and %zu measured alone", pairs->n_alone[SIMULATED],
                pairs->n_alone[MEASURED]);
    fputc('\n', out);
    if (v->simulated.trace->has_stamps && v->measured.trace->has_stamps)
        print_arrivals(out, pairs);
    fputc('\n', out);
}

/* A value that rounds to zero at four decimals is shown as 0, not -0. */
static double shown(double value)
{
    return fabs(value) < 5e-5 ? 0 : value;
}

/* The cell of one statistic: both sides and the error. */
static void print_row(FILE *out, const char *label, const struct finding *f, double scale,
                      const char *unit)
{
    if (!f)
        return;
    const double relative = f->measured > 0 ? 100 * f->error / f->measured : (double)NAN;
    fprintf(out, "%-24s %-6s %12.4f %12.4f %12.4f", label, unit, f->simulated * scale,
            f->measured * scale, shown(f->error * scale));
    if (!isnan(relative))
        fprintf(out, " %8.2f %%", fabs(relative) < 5e-3 ? 0 : relative);
    if (finding_has_interval(f))
        fprintf(out, "  [%.4f, %.4f]%s", f->low * scale, f->high * scale,
                finding_is_inside(f) ? "" : " *");
    fputc('\n', out);
}

static void print_latency(FILE *out, const struct findings *findings, const char *metric,
                          const char *label, double scale, const char *unit)
{
    static const char *const statistics[] = {"mean", "p50", "p90", "p99"};
    char text[48];
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "%s %s", label, statistics[i]);
        print_row(out, text, findings_get(findings, metric, statistics[i]), scale, unit);
    }
}

static void print_inside(FILE *out, const struct findings *findings)
{
    size_t n = 0, n_inside = 0;
    for (size_t i = 0; i < findings->n; i++) {
        n += finding_has_interval(&findings->of[i]);
        n_inside += finding_is_inside(&findings->of[i]);
    }
    if (n > 0)
        fprintf(out,
                "%zu of %zu measured values lie in the 90%% interval of the simulation; * does "
                "not\n",
                n_inside, n);
}

static void print_request_errors(FILE *out, const struct findings *findings)
{
    static const char *const metrics[][2] = {
        {"ttft_s", "TTFT"}, {"tpot_s", "TPOT"}, {"e2e_s", "end to end"}};
    fprintf(out, "\n%-24s %10s %10s %10s %10s %12s\n", "error of a request, abs.", "mean", "p50",
            "p90", "p99", "KS distance");
    for (int i = 0; i < 3; i++) {
        const struct finding *ks = findings_get(findings, metrics[i][0], "kolmogorov_smirnov");
        static const char *const names[] = {
            "request_abs_relative_error_mean", "request_abs_relative_error_p50",
            "request_abs_relative_error_p90", "request_abs_relative_error_p99"};
        if (!ks)
            continue;
        fprintf(out, "%-24s", metrics[i][1]);
        for (int k = 0; k < 4; k++)
            fprintf(out, " %8.2f %%", 100 * findings_get(findings, metrics[i][0], names[k])->error);
        fprintf(out, " %12.4f\n", ks->error);
    }
}

static void print_error(FILE *out, const char *label, const struct finding *f, const char *unit)
{
    if (f)
        fprintf(out, "%-24s %-6s %12s %12s %12.4f\n", label, unit, "", "", shown(f->error));
}

static void print_split(FILE *out, const struct findings *f)
{
    fprintf(out, "\ncost: what steps take\n");
    print_row(out, "  lone prefill, p50", findings_get(f, "cost.lone_prefill_s", "p50"), 1e3, "ms");
    print_row(out, "  lone decode, p50", findings_get(f, "cost.lone_decode_s", "p50"), 1e3, "ms");
    print_error(out, "  of the steps there were", findings_get(f, "cost.steps_s", "sum"), "s");
    print_row(out, "  prefill after queueing", findings_get(f, "prefill_s", "mean"), 1, "s");
    print_row(out, "  decode", findings_get(f, "decode_s", "mean"), 1, "s");
    fprintf(out, "scheduling: which steps there are, and which requests wait\n");
    print_row(out, "  queueing mean", findings_get(f, "queue_s", "mean"), 1, "s");
    print_row(out, "  queueing p99", findings_get(f, "queue_s", "p99"), 1, "s");
    print_row(out, "  preemptions", findings_get(f, "scheduling.preemptions", "sum"), 1, "");
    print_row(out, "  steps", findings_get(f, "steps.count", "sum"), 1, "");
    print_row(out, "  steps alike at first", findings_get(f, "steps.alike_from_the_start", "count"),
              1, "");
    print_error(out, "  other steps", findings_get(f, "scheduling.steps_s", "sum"), "s");
    print_error(out, "  order: rank correl.", findings_get(f, "scheduling.order", "spearman"), "");
    print_error(out, "  order: inversions", findings_get(f, "scheduling.order", "inversions_frac"),
                "");
}

void print_validation(const struct ifl_validation *v, const struct pairs *pairs,
                      const struct findings *findings)
{
    FILE *out = v->table;
    print_pairs(out, v, pairs);
    fprintf(out, "%-24s %-6s %12s %12s %12s %10s\n", "", "", "simulated", "measured", "error",
            "relative");
    print_latency(out, findings, "ttft_s", "TTFT", 1, "s");
    print_latency(out, findings, "tpot_s", "TPOT", 1e3, "ms");
    print_latency(out, findings, "itl_s", "ITL", 1e3, "ms");
    print_latency(out, findings, "e2e_s", "end to end", 1, "s");
    print_latency(out, findings, "normalized_latency_s", "normalized", 1e3, "ms/tok");
    print_row(out, "request throughput", findings_get(findings, "request_throughput_rps", "value"),
              1, "req/s");
    print_row(out, "output throughput",
              findings_get(findings, "output_throughput_tok_per_s", "value"), 1, "tok/s");
    print_inside(out, findings);
    print_request_errors(out, findings);
    print_split(out, findings);
}
