/* The export to the JSON of vllm bench serve: a run of four requests, with sums by hand. */
#include "scratch.h"

#include <jansson.h>
#include <math.h>

#include "inflight/export.h"

#define MS (IFL_NS_PER_S / 1000)
enum { N = 4 };

struct run {
    struct scratch scratch;
    int64_t arrival_ns[N];
    int32_t n_prompt[N], n_output[N];
    struct ifl_outcome outcome[N];
    struct ifl_trace trace;
    struct ifl_bench_export export;
};

/* Answers of 3, 1 and 5 tokens; the third request never finished. */
static struct run *make(void)
{
    static const struct run proto = {
        .arrival_ns = {0, 500 * MS, 600 * MS, 1000 * MS},
        .n_prompt = {10, 20, 30, 40},
        .n_output = {3, 1, 7, 5},
        .outcome = {{0, 100 * MS, 300 * MS, 0},
                    {0, 200 * MS, 200 * MS, 0},
                    {0, 400 * MS, IFL_NEVER, 1},
                    {0, 300 * MS, 1100 * MS, 0}},
    };
    struct run *run = malloc(sizeof *run);
    cr_assert_not_null(run);
    *run = proto;
    run->scratch = scratch_make();
    run->trace = (struct ifl_trace){.n = N,
                                    .has_stamps = true,
                                    .arrival_ns = run->arrival_ns,
                                    .n_prompt = run->n_prompt,
                                    .n_output = run->n_output,
                                    .outcome = run->outcome};
    run->export = (struct ifl_bench_export){.trace = &run->trace,
                                            .dir = run->scratch.dir,
                                            .model = "a \"quoted\" model",
                                            .rate_rps = 4,
                                            .burstiness = NAN};
    return run;
}

static json_t *export(struct run *run)
{
    struct ifl_error error;
    json_error_t found;
    const char *path = scratch_path(&run->scratch, "bench.json");
    cr_assert_eq(ifl_export_bench(&run->export, path, &error), 0, "%s", error.text);
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &found);
    cr_assert_not_null(json, "%s", found.text);
    return json;
}

static double number(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    cr_assert_not_null(value, "%s is missing", key);
    return json_is_null(value) ? (double)NAN : json_number_value(value);
}

static void expect(const json_t *json, const char *key, double value)
{
    cr_expect_float_eq(number(json, key), value, 1e-9 * (1 + fabs(value)), "%s is %.12g, not %.12g",
                       key, number(json, key), value);
}

static void expect_entry(const json_t *json, const char *key, size_t i, double value)
{
    cr_expect_float_eq(json_number_value(json_array_get(json_object_get(json, key), i)), value,
                       1e-12, "%s[%zu]", key, i);
}

Test(bench, counts_and_throughputs)
{
    struct run *run = make();
    json_t *json = export(run);
    cr_expect_str_eq(json_string_value(json_object_get(json, "model_id")), "a \"quoted\" model");
    expect(json, "num_prompts", 4);
    expect(json, "completed", 3);
    expect(json, "failed", 1);
    expect(json, "total_input_tokens", 70);
    expect(json, "total_output_tokens", 9);
    expect(json, "duration", 2.1);
    expect(json, "output_throughput", 9 / 2.1);
    expect(json, "total_token_throughput", 79 / 2.1);
    expect(json, "request_rate", 4);
    cr_expect(isnan(number(json, "burstiness")));
    json_decref(json);
    scratch_remove(&run->scratch);
    free(run);
}

/* TTFT 100, 200, 300 ms; TPOT 100 and 200 ms of the answers of two tokens and more. */
Test(bench, latencies_in_milliseconds)
{
    struct run *run = make();
    json_t *json = export(run);
    expect(json, "mean_ttft_ms", 200);
    expect(json, "median_ttft_ms", 200);
    expect(json, "std_ttft_ms", 100 * sqrt(2 / 3.0));
    expect(json, "p90_ttft_ms", 280);
    expect(json, "mean_tpot_ms", 150);
    expect(json, "std_tpot_ms", 50);
    expect(json, "p99_tpot_ms", 199);
    expect(json, "mean_e2el_ms", (300 + 200 + 1100) / 3.0);
    expect(json, "mean_itl_ms", (200 + 800) / 6.0);
    cr_expect(isnan(number(json, "p99_itl_ms")), "a run without quantiles.csv");
    json_decref(json);
    scratch_remove(&run->scratch);
    free(run);
}

Test(bench, percentiles_of_gaps_are_those_of_the_run)
{
    struct run *run = make();
    scratch_write(&run->scratch, "quantiles.csv",
                  "point,quantile,ttft_s,itl_s\n0,0.5,0.2,0.15\n0,0.99,0.3,0.25\n");
    json_t *json = export(run);
    expect(json, "median_itl_ms", 150);
    expect(json, "p99_itl_ms", 250);
    json_decref(json);
    scratch_remove(&run->scratch);
    free(run);
}

Test(bench, an_entry_a_request)
{
    struct run *run = make();
    json_t *json = export(run);
    expect_entry(json, "input_lens", 2, 30);
    expect_entry(json, "output_lens", 2, 0);
    expect_entry(json, "ttfts", 0, 0.1);
    expect_entry(json, "ttfts", 2, 0);
    expect_entry(json, "start_times", 3, 1);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(json, "errors"), 2)),
                     "not finished");
    const json_t *itls = json_object_get(json, "itls");
    static const size_t n_gaps[N] = {2, 0, 0, 4};
    for (size_t i = 0; i < N; i++)
        cr_expect_eq(json_array_size(json_array_get(itls, i)), n_gaps[i]);
    cr_expect_float_eq(json_number_value(json_array_get(json_array_get(itls, 3), 3)), 0.2, 1e-12);
    cr_expect(json_is_true(json_object_get(json, "itls_are_means")));
    json_decref(json);
    scratch_remove(&run->scratch);
    free(run);
}

/* No request finished: there are no aggregates, and the file is still valid. */
Test(bench, nothing_finished)
{
    struct run *run = make();
    for (int i = 0; i < N; i++)
        run->outcome[i].e2e_ns = IFL_NEVER;
    run->export.rate_rps = INFINITY;
    json_t *json = export(run);
    expect(json, "completed", 0);
    cr_expect(isnan(number(json, "mean_ttft_ms")));
    cr_expect(isnan(number(json, "duration")));
    cr_expect_str_eq(json_string_value(json_object_get(json, "request_rate")), "inf");
    json_decref(json);
    scratch_remove(&run->scratch);
    free(run);
}
