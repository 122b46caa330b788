#include <math.h>
#include <string.h>

#include "columns.h"
#include "inflight/report.h"

#define LINE_CHARS 110
#define METRIC_CHARS 75 /* what the metrics of a row take; the keys share the rest */
#define MIN_KEY_CHARS 6

static const char saturated_note[] = "saturated: the queue grew over the second half of the "
                                     "arrivals; latencies tell the run's length";

/* ---- a sweep: a row a point ---- */

struct table {
    FILE *out;
    size_t n_points, n_keys;
    const char *const *keys, *const *values; /* [n_keys], [n_points][n_keys] */
};

static int widest(const struct table *table, size_t key)
{
    size_t most = strlen(column_short_key(table->keys[key]));
    for (size_t i = 0; i < table->n_points; i++) {
        const size_t n = strlen(table->values[i * table->n_keys + key]);
        most = n > most ? n : most;
    }
    return most < LINE_CHARS ? (int)most : LINE_CHARS;
}

/* Keys that fit their fair share keep their width; the wide ones are cut to an equal rest. */
static int key_limit(const struct table *table)
{
    int limit = LINE_CHARS, total = LINE_CHARS + 1;
    while (total > LINE_CHARS - METRIC_CHARS && limit > MIN_KEY_CHARS) {
        limit--;
        total = 0;
        for (size_t key = 0; key < table->n_keys; key++) {
            const int width = widest(table, key);
            total += (width < limit ? width : limit) + 2;
        }
    }
    return limit;
}

static int key_width(const struct table *table, size_t key, int limit)
{
    const int width = widest(table, key);
    return width < limit ? width : limit;
}

static void put_key_cell(FILE *out, const char *text, int width)
{
    if ((int)strlen(text) > width)
        fprintf(out, "%.*s~  ", width - 1, text);
    else
        fprintf(out, "%-*s  ", width, text);
}

static void put_keys(const struct table *table, const char *const *row, bool head, int limit)
{
    for (size_t key = 0; key < table->n_keys; key++)
        put_key_cell(table->out, head ? column_short_key(row[key]) : row[key],
                     key_width(table, key, limit));
}

static void put_blank_keys(const struct table *table, int limit)
{
    for (size_t key = 0; key < table->n_keys; key++)
        put_key_cell(table->out, "", key_width(table, key, limit));
}

static void put_number(FILE *out, int width, int decimals, double value)
{
    if (isnan(value))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, decimals, value);
}

static void put_point(FILE *out, const struct ifl_summary *s)
{
    char finished[48];
    snprintf(finished, sizeof finished, "%llu/%llu", (unsigned long long)s->n_finished,
             (unsigned long long)s->n_requests);
    fprintf(out, "%11s", finished);
    put_number(out, 6, 2, s->request_throughput_rps);
    put_number(out, 7, 1, s->output_throughput_tok_per_s);
    put_number(out, 7, 3, s->ttft_s.mean);
    put_number(out, 7, 3, s->ttft_s.p99);
    put_number(out, 6, 1, s->itl_s.mean * 1e3);
    put_number(out, 7, 1, s->itl_s.p99 * 1e3);
    put_number(out, 7, 4, s->normalized_latency_s.mean);
    fprintf(out, " %7llu%s\n", (unsigned long long)s->preemptions, s->saturated ? " *" : "");
}

static const char *const head_lines[] = {
    "  finished/  req/s   out    TTFT     p99    ITL     p99 latency preempt\n",
    "   requests         tok/s       s       s     ms      ms   s/tok   tions\n",
};

static void put_head(const struct table *table, int limit)
{
    put_keys(table, table->keys, true, limit);
    fputs(head_lines[0], table->out);
    put_blank_keys(table, limit);
    fputs(head_lines[1], table->out);
}

static void put_sweep(const struct table *table, const struct ifl_summary *summaries)
{
    const int limit = key_limit(table);
    bool any_saturated = false;
    put_head(table, limit);
    for (size_t i = 0; i < table->n_points; i++) {
        put_keys(table, table->values + i * table->n_keys, false, limit);
        put_point(table->out, &summaries[i]);
        any_saturated |= summaries[i].saturated;
    }
    if (any_saturated)
        fprintf(table->out, "* %s\n", saturated_note);
}

/* ---- one point: a line a metric ---- */

static void put_line(FILE *out, const char *name, int decimals, double value, const char *unit)
{
    if (isnan(value))
        fprintf(out, "%-20s %12s\n", name, "-");
    else
        fprintf(out, "%-20s %12.*f %s\n", name, decimals, value, unit);
}

static void put_count(FILE *out, const char *name, uint64_t count)
{
    fprintf(out, "%-20s %12llu\n", name, (unsigned long long)count);
}

static void put_latency(FILE *out, const char *name, const struct ifl_quantiles *of, double scale,
                        const char *unit)
{
    const double values[] = {of->mean, of->p50, of->p90, of->p95, of->p99};
    fprintf(out, "%-20s", name);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        put_number(out, i ? 10 : 12, 3, values[i] * scale);
    fprintf(out, " %s\n", unit);
}

static void put_counts(FILE *out, const struct ifl_summary *s)
{
    put_count(out, "requests", s->n_requests);
    put_count(out, "finished", s->n_finished);
    if (s->n_rejected)
        put_count(out, "rejected", s->n_rejected);
    if (s->n_failed)
        put_count(out, "failed", s->n_failed);
    put_line(out, "duration", 3, s->duration_s, "s");
    put_line(out, "request throughput", 3, s->request_throughput_rps, "req/s");
    put_line(out, "output throughput", 1, s->output_throughput_tok_per_s, "tok/s");
    put_line(out, "total throughput", 1, s->total_throughput_tok_per_s, "tok/s");
    put_line(out, "goodput", 3, s->goodput_rps, "req/s");
    put_line(out, "SLO attainment", 1, s->attainment_frac * 100, "%");
}

static void put_latencies(FILE *out, const struct ifl_summary *s)
{
    fprintf(out, "\n%-20s %12s %10s %10s %10s %10s\n", "", "mean", "p50", "p90", "p95", "p99");
    put_latency(out, "TTFT", &s->ttft_s, 1, "s");
    put_latency(out, "TPOT", &s->tpot_s, 1e3, "ms");
    put_latency(out, "ITL", &s->itl_s, 1e3, "ms");
    put_latency(out, "end to end", &s->e2e_s, 1, "s");
    put_latency(out, "normalized latency", &s->normalized_latency_s, 1e3, "ms/tok");
}

static void put_memory(FILE *out, const struct ifl_summary *s)
{
    fputc('\n', out);
    put_count(out, "steps", s->n_steps);
    put_line(out, "mean batch", 2, s->mean_batch, "seqs");
    put_count(out, "preemptions", s->preemptions);
    put_count(out, "swap-outs", s->swap_outs);
    put_line(out, "KV holds tokens", 1, s->kv_token_frac * 100, "% of the pool");
    put_line(out, "KV reserved", 1, s->kv_reserved_frac * 100, "%");
    put_line(out, "KV internal waste", 1, s->kv_internal_frac * 100, "%");
    put_line(out, "KV external", 1, s->kv_external_frac * 100, "%");
    if (s->saturated)
        fprintf(out, "\n%s\n", saturated_note);
}

void ifl_print_summary(void *file, size_t n_points, size_t n_keys, const char *const *keys,
                       const char *const *values, const struct ifl_summary *summaries)
{
    const struct table table = {
        .out = file, .n_points = n_points, .n_keys = n_keys, .keys = keys, .values = values};
    if (n_points != 1 || n_keys != 0) {
        put_sweep(&table, summaries);
        return;
    }
    put_counts(file, summaries);
    put_latencies(file, summaries);
    put_memory(file, summaries);
}
