/* The summary as a table for a terminal: the metrics that fit into a line, and notes below it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "inflight/report.h"
#include "tables/columns.h"

#define LINE_CHARS 110
#define METRIC_CHARS 75 /* width of the metrics of a row; the keys share the rest */
#define MIN_KEY_CHARS 6

static const char saturated_note[] = "saturated: the backlog grew over the second half of the "
                                     "arrivals; latencies tell the run's length";

/* ---- what was not measured ---- */

static void put_wrapped(FILE *out, const char *text)
{
    size_t at = 0;
    for (const char *word = text; *word;) {
        const size_t n = strcspn(word, " ");
        if (at > 0 && at + 1 + n > LINE_CHARS)
            at = (size_t)fprintf(out, "\n   ") - 1;
        at += (size_t)fprintf(out, "%s%.*s", at ? " " : "", (int)n, word);
        word += n + strspn(word + n, " ");
    }
    fputc('\n', out);
}

/* The first few different ones of a sweep. */
struct assumptions {
    char of[4][sizeof((struct ifl_summary *)0)->assumed];
    size_t n;
    bool more;
};

static void collect(struct assumptions *all, const char *assumed)
{
    size_t i = 0;
    while (i < all->n && strcmp(all->of[i], assumed) != 0)
        i++;
    if (!*assumed || i < all->n)
        return;
    if (all->n < sizeof all->of / sizeof *all->of)
        snprintf(all->of[all->n++], sizeof *all->of, "%s", assumed);
    else
        all->more = true;
}

static void put_assumptions(FILE *out, const struct assumptions *all)
{
    char text[sizeof *all->of + 32];
    for (size_t i = 0; i < all->n; i++) {
        snprintf(text, sizeof text, "assumed, not measured: %s", all->of[i]);
        put_wrapped(out, text);
    }
    if (all->more)
        fputs("assumed, not measured: more, see summary.csv\n", out);
}

/* ---- a sweep: a row a point ---- */

struct table {
    FILE *out;
    const struct ifl_points *points;
    const char **values; /* [n_keys] of the point at hand, owned */
    int *widths;         /* [n_keys], owned */
};

static int chars(const char *text)
{
    const size_t n = strlen(text);
    return n < LINE_CHARS ? (int)n : LINE_CHARS;
}

static int measure(const struct table *table, struct ifl_error *error)
{
    const struct ifl_points *points = table->points;
    for (size_t key = 0; key < points->n_keys; key++)
        table->widths[key] = chars(column_short_key(points->keys[key]));
    for (size_t i = 0; i < points->n_points; i++) {
        if (points->at(points->context, i, table->values, NULL, error))
            return error->code;
        for (size_t key = 0; key < points->n_keys; key++) {
            const int width = chars(table->values[key]);
            if (width > table->widths[key])
                table->widths[key] = width;
        }
    }
    return IFL_OK;
}

/* Keys no wider than their fair share keep their width; the others share the rest equally. */
static void cut_widths(const struct table *table)
{
    const size_t n_keys = table->points->n_keys;
    int limit = LINE_CHARS, total = LINE_CHARS + 1;
    while (total > LINE_CHARS - METRIC_CHARS && limit > MIN_KEY_CHARS) {
        limit--;
        total = 0;
        for (size_t key = 0; key < n_keys; key++)
            total += ifl_min(table->widths[key], limit) + 2;
    }
    for (size_t key = 0; key < n_keys; key++)
        if (table->widths[key] > limit)
            table->widths[key] = limit;
}

static void put_key_cell(FILE *out, const char *text, int width)
{
    if ((int)strlen(text) > width)
        fprintf(out, "%.*s~  ", width - 1, text);
    else
        fprintf(out, "%-*s  ", width, text);
}

static void put_keys(const struct table *table, const char *const *row)
{
    for (size_t key = 0; key < table->points->n_keys; key++)
        put_key_cell(table->out, row[key], table->widths[key]);
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
    if (s->error[0]) {
        fprintf(out, "  failed: %s\n", s->error);
        return;
    }
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

static void put_head(const struct table *table)
{
    for (size_t key = 0; key < table->points->n_keys; key++)
        put_key_cell(table->out, column_short_key(table->points->keys[key]), table->widths[key]);
    fputs(head_lines[0], table->out);
    for (size_t key = 0; key < table->points->n_keys; key++)
        put_key_cell(table->out, "", table->widths[key]);
    fputs(head_lines[1], table->out);
}

static int put_sweep(const struct table *table, struct ifl_error *error)
{
    const struct ifl_points *points = table->points;
    struct assumptions assumptions = {.n = 0};
    bool any_saturated = false;
    if (measure(table, error))
        return error->code;
    cut_widths(table);
    put_head(table);
    for (size_t i = 0; i < points->n_points; i++) {
        struct ifl_summary summary;
        if (points->at(points->context, i, table->values, &summary, error))
            return error->code;
        put_keys(table, table->values);
        put_point(table->out, &summary);
        any_saturated |= summary.saturated;
        collect(&assumptions, summary.assumed);
    }
    if (any_saturated)
        fprintf(table->out, "* %s\n", saturated_note);
    put_assumptions(table->out, &assumptions);
    return IFL_OK;
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
    if (s->n_aborted)
        put_count(out, "aborted", s->n_aborted);
    if (s->n_timed_out)
        put_count(out, "timed out", s->n_timed_out);
    if (s->n_shed)
        put_count(out, "shed", s->n_shed);
    if (s->wasted_tokens)
        put_line(out, "wasted", 1, s->wasted_frac * 100, "% of the computed tokens");
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
    if (s->cached_prompt_frac > 0)
        put_line(out, "prompts from cache", 1, s->cached_prompt_frac * 100, "% of their tokens");
    if (s->kv_shared_frac > 0)
        put_line(out, "KV saved by sharing", 1, s->kv_shared_frac * 100, "% of the blocks");
    if (s->saturated)
        fprintf(out, "\n%s\n", saturated_note);
}

static int put_single(FILE *out, const struct ifl_points *points, struct ifl_error *error)
{
    struct ifl_summary summary;
    if (points->at(points->context, 0, NULL, &summary, error))
        return error->code;
    put_counts(out, &summary);
    put_latencies(out, &summary);
    put_memory(out, &summary);
    struct assumptions assumptions = {.n = 0};
    collect(&assumptions, summary.assumed);
    put_assumptions(out, &assumptions);
    return IFL_OK;
}

int ifl_print_summary(void *file, const struct ifl_points *points, struct ifl_error *error)
{
    if (points->n_points == 1 && points->n_keys == 0)
        return put_single(file, points, error);
    const struct table table = {
        .out = file,
        .points = points,
        .values = calloc(points->n_keys + 1, sizeof *table.values),
        .widths = calloc(points->n_keys + 1, sizeof *table.widths),
    };
    const int code =
        table.values && table.widths ? put_sweep(&table, error) : ifl_fail_nomem(error);
    free(table.values);
    free(table.widths);
    return code;
}
