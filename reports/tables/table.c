/* The summary as a table for a terminal: the metrics that fit into a line, and notes below it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "inflight/report.h"
#include "tables/columns.h"
#include "tables/metric.h"

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

enum when { ALWAYS, UNLESS_ZERO };

/* The columns of summary.csv in lines of their own, in this order. */
static const struct line {
    const char *column;
    int decimals;
    enum when when;
} counts[] = {{"requests", 0, ALWAYS},
              {"finished", 0, ALWAYS},
              {"rejected", 0, UNLESS_ZERO},
              {"failed", 0, UNLESS_ZERO},
              {"aborted", 0, UNLESS_ZERO},
              {"timed_out", 0, UNLESS_ZERO},
              {"shed", 0, UNLESS_ZERO},
              {"wasted_frac", 1, UNLESS_ZERO},
              {"retries", 0, UNLESS_ZERO},
              {"duration_s", 3, ALWAYS},
              {"request_throughput_rps", 3, ALWAYS},
              {"output_throughput_tok_per_s", 1, ALWAYS},
              {"total_throughput_tok_per_s", 1, ALWAYS},
              {"goodput_rps", 3, ALWAYS},
              {"attainment_frac", 1, ALWAYS}},
  memory[] = {{"steps", 0, ALWAYS},
              {"mean_batch_seqs", 2, ALWAYS},
              {"mean_adapters", 2, UNLESS_ZERO},
              {"adapter_loads", 0, UNLESS_ZERO},
              {"migrations", 0, UNLESS_ZERO},
              {"bubble_frac", 1, UNLESS_ZERO},
              {"preemptions", 0, ALWAYS},
              {"swap_outs", 0, ALWAYS},
              {"kv_token_frac", 1, ALWAYS},
              {"kv_reserved_frac", 1, ALWAYS},
              {"kv_internal_frac", 1, ALWAYS},
              {"kv_external_frac", 1, ALWAYS},
              {"cached_prompt_frac", 1, UNLESS_ZERO},
              {"kv_shared_frac", 1, UNLESS_ZERO}};

static void put_line(FILE *out, const struct line *line, const struct ifl_summary *summary)
{
    size_t c = 0;
    while (c < n_summary_columns && strcmp(summary_columns[c].name, line->column) != 0)
        c++;
    ifl_require(c < n_summary_columns);
    const struct metric metric = metric_of(line->column);
    const double value = column_number(&summary_columns[c], summary) * metric.scale;
    if (line->when == UNLESS_ZERO && !(value > 0))
        return;
    if (isnan(value))
        fprintf(out, "%-20s %12s\n", metric.in_words, "-");
    else
        fprintf(out, "%-20s %12.*f%s%s\n", metric.in_words, line->decimals, value,
                *metric.unit_in_words ? " " : "", metric.unit_in_words);
}

static void put_latency(FILE *out, const char *column, const struct ifl_quantiles *of)
{
    const struct metric metric = metric_of(column);
    const double values[] = {of->mean, of->p50, of->p90, of->p95, of->p99};
    fprintf(out, "%-20s", metric.in_words);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        put_number(out, i ? 10 : 12, 3, values[i] * metric.scale);
    fprintf(out, " %s\n", metric.unit_in_words);
}

static void put_latencies(FILE *out, const struct ifl_summary *s)
{
    fprintf(out, "\n%-20s %12s %10s %10s %10s %10s\n", "", "mean", "p50", "p90", "p95", "p99");
    put_latency(out, "mean_ttft_s", &s->ttft_s);
    put_latency(out, "mean_tpot_s", &s->tpot_s);
    put_latency(out, "mean_itl_s", &s->itl_s);
    put_latency(out, "mean_e2e_s", &s->e2e_s);
    put_latency(out, "mean_normalized_latency_s", &s->normalized_latency_s);
}

static int put_single(FILE *out, const struct ifl_points *points, struct ifl_error *error)
{
    struct ifl_summary summary;
    if (points->at(points->context, 0, NULL, &summary, error))
        return error->code;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        put_line(out, &counts[i], &summary);
    put_latencies(out, &summary);
    fputc('\n', out);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        put_line(out, &memory[i], &summary);
    if (summary.saturated)
        fprintf(out, "\n%s\n", saturated_note);
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
