/* What a comparison found, for a terminal. */
#include <math.h>
#include <string.h>

#include "compare/findings.h"
#include "inflight/minmax.h"
#include "tables/columns.h"

/* A latency is paired by request if possible: that gives an interval without replications. */
static const struct shown {
    const char *title, *column, *latency;
    double scale;
} metrics[] = {
    {"output tok/s", "output_throughput_tok_per_s", NULL, 1},
    {"TTFT s", "mean_ttft_s", "ttft_s", 1},
    {"p99 TTFT s", "p99_ttft_s", NULL, 1},
    {"TPOT ms", "mean_tpot_s", "tpot_s", 1e3},
    {"latency ms/tok", "mean_normalized_latency_s", "normalized_latency_s", 1e3},
};
enum { N_METRICS = sizeof metrics / sizeof *metrics };

enum { DIFFERENCE_CHARS = 9, INTERVAL_CHARS = 7 };

static int key_chars(const struct matching *matching, size_t key)
{
    size_t most = strlen(column_short_key(matching_name(matching, key)));
    for (size_t g = 0; g < matching->n_groups; g++) {
        const size_t n = strlen(matching_value(matching, g, key));
        most = ifl_max(most, n);
    }
    return most < COMPARE_KEY_CHARS ? (int)most : COMPARE_KEY_CHARS;
}

static void print_runs(FILE *out, const struct matching *matching)
{
    static const char *const role[N_RUNS] = {"base", "other"};
    const struct ifl_comparison *of = matching->of;
    for (int run = 0; run < N_RUNS; run++) {
        fprintf(out, "%-6s %s", role[run], matching_dir(of, (enum run)run));
        if (of->key)
            fprintf(out, ", %s %s", of->key, run == BASE ? of->base_value : of->other_value);
        fputc('\n', out);
    }
    fputs("other - base, +- half the width of the 95% interval, * where that leaves out zero\n\n",
          out);
}

void compare_print_head(FILE *out, const struct matching *matching)
{
    print_runs(out, matching);
    for (size_t k = 0; k < matching_n_names(matching); k++)
        fprintf(out, "%-*.*s  ", key_chars(matching, k), COMPARE_KEY_CHARS,
                column_short_key(matching_name(matching, k)));
    compare_print_titles(out);
}

bool compare_shown(size_t i, const char **column, const char **latency)
{
    if (i >= N_METRICS)
        return false;
    *column = metrics[i].column;
    *latency = metrics[i].latency;
    return true;
}

void compare_print_titles(FILE *out)
{
    for (size_t m = 0; m < N_METRICS; m++)
        fprintf(out, "%*s   ", DIFFERENCE_CHARS + 3 + INTERVAL_CHARS, metrics[m].title);
    fputc('\n', out);
}

const struct finding *finding_get(const struct finding *findings, size_t n, const char *metric,
                                  enum pairing paired_by)
{
    for (size_t i = 0; metric && i < n; i++)
        if (findings[i].paired_by == paired_by && strcmp(findings[i].metric, metric) == 0)
            return findings[i].difference.n_samples ? &findings[i] : NULL;
    return NULL;
}

void compare_print_cell(FILE *out, size_t i, double difference, double half_width, bool is_marked)
{
    if (isnan(difference)) {
        fprintf(out, "%*s   ", DIFFERENCE_CHARS + 3 + INTERVAL_CHARS, "-");
        return;
    }
    /* Large numbers are printed as integers, not as powers of ten. */
    difference *= metrics[i].scale;
    half_width *= metrics[i].scale;
    fprintf(out, fabs(difference) < 999.5 ? "%+*.3g" : "%+*.0f", DIFFERENCE_CHARS, difference);
    if (isnan(half_width)) {
        fprintf(out, "   %*s   ", INTERVAL_CHARS, "");
        return;
    }
    fprintf(out, half_width < 99.5 ? " +-%*.2g" : " +-%*.0f", INTERVAL_CHARS, half_width);
    fputs(is_marked ? "*  " : "   ", out);
}

void compare_print_row(FILE *out, const struct matching *matching, size_t group,
                       const struct finding *findings, size_t n)
{
    for (size_t k = 0; k < matching_n_names(matching); k++)
        fprintf(out, "%-*.*s  ", key_chars(matching, k), COMPARE_KEY_CHARS,
                matching_value(matching, group, k));
    for (size_t m = 0; m < N_METRICS; m++) {
        const struct finding *found = finding_get(findings, n, metrics[m].latency, BY_REQUEST);
        if (!found)
            found = finding_get(findings, n, metrics[m].column, BY_REPLICATION);
        compare_print_cell(out, m, found ? found->difference.of.mean : (double)NAN,
                           found ? found->difference.of.half_width : (double)NAN,
                           found && difference_is_sure(&found->difference));
    }
    fputc('\n', out);
}
