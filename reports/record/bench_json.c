/* The JSON of vllm bench serve: its names, its units, its rules (vllm/benchmarks/serve.py).
 *
 * A failed request has no tokens and counts in no sum; TPOT is of answers of two tokens and more;
 * the standard deviation is of the population, as numpy's. */
#include <gsl/gsl_statistics_double.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/export.h"
#include "inflight/minmax.h"
#include "record/quantile.h"
#include "record/quantiles_csv.h"
#include "tables/row.h"
#include "tables/sort.h"
#include "tables/whole_file.h"

struct bench {
    const struct ifl_bench_export *of;
    struct whole_file file;
    int64_t *ns;  /* [n] scratch */
    double *ms;   /* [n] scratch */
    size_t n_itl; /* gaps of all requests */
    double itl_s; /* their sum */
};

/* ---- keys and values ---- */

static int put(struct bench *bench, struct ifl_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int put(struct bench *bench, struct ifl_error *error, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return whole_write(&bench->file, text, error);
}

/* JSON has no infinity and no NaN. */
static int put_number(struct bench *bench, const char *key, double value, struct ifl_error *error)
{
    return isfinite(value) ? put(bench, error, "\"%s\": %.12g, ", key, value)
                           : put(bench, error, "\"%s\": null, ", key);
}

static int put_text(struct bench *bench, const char *key, const char *text, struct ifl_error *error)
{
    json_t *string = text ? json_string(text) : json_null();
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    int rc = quoted ? put(bench, error, "\"%s\": ", key) : ifl_fail_nomem(error);
    if (rc == IFL_OK)
        rc = whole_write(&bench->file, quoted, error);
    if (rc == IFL_OK)
        rc = put(bench, error, ", ");
    free(quoted);
    json_decref(string);
    return rc;
}

/* ---- lists with an entry a request ---- */

static bool completed(const struct bench *bench, size_t row)
{
    return bench->of->trace->outcome[row].e2e_ns != IFL_NEVER &&
           bench->of->trace->outcome[row].ttft_ns != IFL_NEVER;
}

typedef char *put_entry_fn(char *at, const struct bench *bench, size_t row);

static char *put_input_len(char *at, const struct bench *bench, size_t row)
{
    return row_int(at, bench->of->trace->n_prompt[row]);
}

static char *put_output_len(char *at, const struct bench *bench, size_t row)
{
    return row_int(at, completed(bench, row) ? bench->of->trace->n_output[row] : 0);
}

static char *put_ttft(char *at, const struct bench *bench, size_t row)
{
    return row_seconds(at, completed(bench, row) ? bench->of->trace->outcome[row].ttft_ns : 0);
}

static char *put_start(char *at, const struct bench *bench, size_t row)
{
    return row_seconds(at, bench->of->trace->arrival_ns[row]);
}

static char *put_nothing(char *at, const struct bench *bench, size_t row)
{
    (void)bench;
    (void)row;
    return stpcpy(at, "\"\",");
}

static char *put_error(char *at, const struct bench *bench, size_t row)
{
    return stpcpy(at, completed(bench, row) ? "\"\"," : "\"not finished\",");
}

static int put_list(struct bench *bench, const char *key, put_entry_fn *put_entry,
                    struct ifl_error *error)
{
    const size_t n = bench->of->trace->n;
    int rc = put(bench, error, "\"%s\": [", key);
    for (size_t row = 0; rc == IFL_OK && row < n; row++) {
        char *at = whole_room(&bench->file, ROW_NUMBER_BYTES, error);
        if (!at)
            return error->code;
        char *end = put_entry(at, bench, row);
        whole_commit(&bench->file, row + 1 < n ? end : end - 1);
    }
    return rc ? rc : put(bench, error, "], ");
}

/* The gaps of a finished request: those that were recorded, or as many as it has tokens behind the
 * first. */
static size_t n_gaps(const struct bench *bench, size_t row)
{
    const struct ifl_trace *trace = bench->of->trace;
    if (!completed(bench, row))
        return 0;
    return trace->gap_at ? trace->gap_at[row + 1] - trace->gap_at[row]
                         : (size_t)trace->n_output[row] - 1;
}

/* Without recorded gaps every gap is the mean gap, so that they add up to the time after the first
 * token. */
static int put_gaps(struct bench *bench, size_t row, struct ifl_error *error)
{
    const struct ifl_trace *trace = bench->of->trace;
    const struct ifl_outcome *o = &trace->outcome[row];
    const size_t n = n_gaps(bench, row);
    const double gap_s = n > 0 ? ifl_s_from_ns(o->e2e_ns - o->ttft_ns) / (double)n : 0;
    int rc = whole_write(&bench->file, row ? ", [" : "[", error);
    for (size_t i = 0; rc == IFL_OK && i < n; i++) {
        char *at = whole_room(&bench->file, ROW_REAL_BYTES, error);
        if (!at)
            return error->code;
        char *end = trace->gap_at ? row_seconds(at, trace->gap_ns[trace->gap_at[row] + i])
                                  : row_real(at, gap_s);
        whole_commit(&bench->file, i + 1 < n ? end : end - 1);
    }
    return rc ? rc : whole_write(&bench->file, "]", error);
}

static int put_itls(struct bench *bench, struct ifl_error *error)
{
    int rc = put(bench, error, "\"itls_are_means\": %s, \"itls\": [",
                 bench->of->trace->gap_at ? "false" : "true");
    for (size_t row = 0; rc == IFL_OK && row < bench->of->trace->n; row++)
        rc = put_gaps(bench, row, error);
    return rc ? rc : put(bench, error, "], ");
}

/* ---- aggregates ---- */

static const double wanted[] = {0.5, 0.9, 0.95, 0.99};
static const char *const wanted_name[] = {"median", "p90", "p95", "p99"};
enum { N_WANTED = 4 };

static int put_aggregates(struct bench *bench, const char *metric, size_t n,
                          struct ifl_error *error)
{
    double at[N_WANTED];
    char key[32];
    if (sort_by_key(bench->ns, NULL, n, error))
        return error->code;
    quantile_find(bench->ns, NULL, n, wanted, N_WANTED, at);
    for (size_t i = 0; i < n; i++)
        bench->ms[i] = (double)bench->ns[i] * 1e-6;
    const double mean = quantile_mean(bench->ns, NULL, n) * 1e-6;
    const double variance =
        n ? gsl_stats_variance_with_fixed_mean(bench->ms, 1, n, mean) : (double)NAN;
    snprintf(key, sizeof key, "mean_%s_ms", metric);
    int rc = put_number(bench, key, mean, error);
    snprintf(key, sizeof key, "std_%s_ms", metric);
    if (rc == IFL_OK)
        rc = put_number(bench, key, sqrt(variance), error);
    for (int i = 0; rc == IFL_OK && i < N_WANTED; i++) {
        snprintf(key, sizeof key, "%s_%s_ms", wanted_name[i], metric);
        rc = put_number(bench, key, at[i] * 1e-6, error);
    }
    return rc;
}

static int put_latencies(struct bench *bench, struct ifl_error *error)
{
    const struct ifl_trace *trace = bench->of->trace;
    size_t n = 0, n_tpot = 0;
    for (size_t row = 0; row < trace->n; row++)
        if (completed(bench, row))
            bench->ns[n++] = trace->outcome[row].ttft_ns;
    int rc = put_aggregates(bench, "ttft", n, error);
    for (size_t row = 0; row < trace->n; row++) {
        const struct ifl_outcome *o = &trace->outcome[row];
        const int32_t n_gaps = trace->n_output[row] - 1;
        if (completed(bench, row) && n_gaps > 0)
            bench->ns[n_tpot++] = (o->e2e_ns - o->ttft_ns + n_gaps / 2) / n_gaps;
    }
    if (rc == IFL_OK)
        rc = put_aggregates(bench, "tpot", n_tpot, error);
    n = 0;
    for (size_t row = 0; row < trace->n; row++)
        if (completed(bench, row))
            bench->ns[n++] = trace->outcome[row].e2e_ns;
    return rc ? rc : put_aggregates(bench, "e2el", n, error);
}

static int put_itl(struct bench *bench, struct ifl_error *error)
{
    double at_s[N_WANTED] = {NAN, NAN, NAN, NAN};
    char key[32];
    if (bench->of->dir &&
        quantiles_csv_read(bench->of->dir, "itl_s", wanted, N_WANTED, at_s, error))
        return error->code;
    int rc = put_number(bench, "mean_itl_ms", 1e3 * bench->itl_s / (double)bench->n_itl, error);
    for (int i = 0; rc == IFL_OK && i < N_WANTED; i++) {
        snprintf(key, sizeof key, "%s_itl_ms", wanted_name[i]);
        rc = put_number(bench, key, 1e3 * at_s[i], error);
    }
    return rc;
}

/* ---- the run as a whole ---- */

static int put_setting(struct bench *bench, struct ifl_error *error)
{
    const struct ifl_bench_export *of = bench->of;
    const char *backend = of->backend ? of->backend : "inflight";
    int rc = put(bench, error, "{");
    if (rc == IFL_OK)
        rc = put_text(bench, "backend", backend, error);
    if (rc == IFL_OK)
        rc = put_text(bench, "endpoint_type", backend, error);
    if (rc == IFL_OK)
        rc = put_text(bench, "label", NULL, error);
    if (rc == IFL_OK)
        rc = put_text(bench, "model_id", of->model, error);
    if (rc == IFL_OK)
        rc = put_text(bench, "tokenizer_id", of->model, error);
    if (rc == IFL_OK)
        rc = put_number(bench, "num_prompts", (double)of->trace->n, error);
    if (rc == IFL_OK)
        rc = isinf(of->rate_rps) ? put_text(bench, "request_rate", "inf", error)
                                 : put_number(bench, "request_rate", of->rate_rps, error);
    if (rc == IFL_OK)
        rc = put_number(bench, "burstiness", of->burstiness, error);
    return rc ? rc
              : put_number(bench, "max_concurrency",
                           of->concurrency > 0 ? (double)of->concurrency : (double)NAN, error);
}

static int put_throughputs(struct bench *bench, struct ifl_error *error)
{
    const struct ifl_trace *trace = bench->of->trace;
    double n_completed = 0, n_input = 0, n_output = 0;
    int64_t first_ns = IFL_NEVER, last_ns = 0;
    for (size_t row = 0; row < trace->n; row++) {
        const int64_t arrival_ns = trace->arrival_ns[row];
        first_ns = ifl_min(first_ns, arrival_ns);
        if (!completed(bench, row))
            continue;
        const int64_t finish_ns = arrival_ns + trace->outcome[row].e2e_ns;
        last_ns = ifl_max(last_ns, finish_ns);
        n_completed++;
        n_input += trace->n_prompt[row];
        n_output += trace->n_output[row];
        bench->n_itl += n_gaps(bench, row);
        bench->itl_s += ifl_s_from_ns(trace->outcome[row].e2e_ns - trace->outcome[row].ttft_ns);
    }
    const double duration_s = last_ns > first_ns ? ifl_s_from_ns(last_ns - first_ns) : (double)NAN;
    const struct {
        const char *key;
        double value;
    } pairs[] = {
        {"duration", duration_s},
        {"completed", n_completed},
        {"failed", (double)trace->n - n_completed},
        {"total_input_tokens", n_input},
        {"total_output_tokens", n_output},
        {"request_throughput", n_completed / duration_s},
        {"request_goodput", NAN},
        {"output_throughput", n_output / duration_s},
        {"total_token_throughput", (n_input + n_output) / duration_s},
    };
    int rc = IFL_OK;
    for (size_t i = 0; rc == IFL_OK && i < sizeof pairs / sizeof *pairs; i++)
        rc = put_number(bench, pairs[i].key, pairs[i].value, error);
    return rc;
}

static int put_requests(struct bench *bench, struct ifl_error *error)
{
    static const struct {
        const char *key;
        put_entry_fn *put_entry;
    } lists[] = {
        {"input_lens", put_input_len}, {"output_lens", put_output_len},  {"ttfts", put_ttft},
        {"start_times", put_start},    {"generated_texts", put_nothing}, {"errors", put_error},
    };
    int rc = IFL_OK;
    for (size_t i = 0; rc == IFL_OK && i < sizeof lists / sizeof *lists; i++)
        rc = put_list(bench, lists[i].key, lists[i].put_entry, error);
    return rc ? rc : put_itls(bench, error);
}

static int put_all(struct bench *bench, struct ifl_error *error)
{
    int rc = put_setting(bench, error);
    if (rc == IFL_OK)
        rc = put_throughputs(bench, error);
    if (rc == IFL_OK)
        rc = put_requests(bench, error);
    if (rc == IFL_OK)
        rc = put_itl(bench, error);
    if (rc == IFL_OK)
        rc = put_latencies(bench, error);
    /* Every value ends with a comma, so this key can follow directly. */
    return rc ? rc : put(bench, error, "\"exported_by\": \"inflight\"}\n");
}

int ifl_export_bench(const struct ifl_bench_export *export, const char *path,
                     struct ifl_error *error)
{
    ifl_assert(export->trace->outcome);
    ifl_assert(ifl_ascends(export->trace->arrival_ns, export->trace->n));
    const size_t n = export->trace->n;
    struct bench bench = {.of = export,
                          .ns = malloc((n + 1) * sizeof *bench.ns),
                          .ms = malloc((n + 1) * sizeof *bench.ms)};
    int rc = bench.ns && bench.ms ? whole_open(&bench.file, path, error) : ifl_fail_nomem(error);
    if (rc == IFL_OK)
        rc = put_all(&bench, error);
    rc = whole_finish(&bench.file, rc, error);
    free(bench.ns);
    free(bench.ms);
    return rc;
}
