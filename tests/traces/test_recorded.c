/* Recorded runs: every format on a few rows written by hand, with the values that stand in the
 * file. */
#include "reading.h"

#define S IFL_NS_PER_S
#define MS (IFL_NS_PER_S / 1000)

#define expect_outcomes(trace, field, ...)                                                         \
    do {                                                                                           \
        const int64_t expected_[] = {__VA_ARGS__};                                                 \
        for (size_t i_ = 0; i_ < sizeof expected_ / sizeof *expected_; i_++)                       \
            cr_expect_eq((int64_t)(trace).outcome[i_].field, expected_[i_],                        \
                         #field " of row %zu is %lld, not %lld", i_,                               \
                         (long long)(trace).outcome[i_].field, (long long)expected_[i_]);          \
    } while (0)

static struct ifl_trace load(const char *name, struct notebook *notebook)
{
    char path[128];
    snprintf(path, sizeof path, FIXTURE("recorded/%s"), name);
    struct ifl_trace trace = must_load(path, notebook);
    cr_assert_not_null(trace.outcome);
    return trace;
}

Test(recorded, blis)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("blis.csv", &notebook);
    cr_assert_eq(trace.n, 2);
    cr_expect(trace.has_stamps);
    expect_column(trace.arrival_ns, 0, 2500 * MS);
    expect_column(trace.n_prompt, 2998, 100);
    expect_column(trace.n_output, 56, 1);
    expect_outcomes(trace, queue_ns, 31879, 125 * MS);
    expect_outcomes(trace, ttft_ns, 1320270000, 250 * MS);
    expect_outcomes(trace, e2e_ns, 2751540000, 250 * MS);
    expect_outcomes(trace, preemptions, -1, -1);
    ifl_trace_free(&trace);
}

Test(recorded, llmd_with_two_rates_in_a_file)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("llmd.csv", &notebook);
    cr_assert_eq(trace.n, 3);
    expect_column(trace.arrival_ns, 0, 2000840000, 0);
    expect_outcomes(trace, queue_ns, IFL_NEVER, IFL_NEVER);
    expect_outcomes(trace, ttft_ns, 175 * MS, 250 * MS, 500 * MS);
    expect_outcomes(trace, e2e_ns, 14675 * MS, 18 * S, 15 * S);
    cr_expect_eq(notebook.n, 1);
    cr_expect(strstr(notebook.last, "another run begins behind request 2"), "%s", notebook.last);
    ifl_trace_free(&trace);
}

Test(recorded, vtc_clients_and_refusals)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("vtc.jsonl", &notebook);
    cr_assert_eq(trace.n, 3);
    expect_column(trace.arrival_ns, 0, 250 * MS, 3 * S);
    expect_column(trace.client, 0, 1, 0);
    cr_assert_eq(trace.n_clients, 2);
    cr_expect_str_eq(trace.client_names[1], "dummy-2");
    expect_outcomes(trace, ttft_ns, 1250 * MS, IFL_NEVER, S);
    expect_outcomes(trace, e2e_ns, 9500 * MS, IFL_NEVER, 2 * S);
    ifl_trace_free(&trace);
}

Test(recorded, vllm_bench_serve)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("bench.json", &notebook);
    cr_assert_eq(trace.n, 3);
    cr_expect(trace.has_stamps);
    expect_column(trace.arrival_ns, 250 * MS, 500 * MS, 0);
    expect_column(trace.request_id, 0, 1, 3);
    expect_column(trace.n_output, 3, 1, 2);
    expect_outcomes(trace, ttft_ns, 153857000, 125 * MS, 500 * MS);
    expect_outcomes(trace, e2e_ns, 153857000 + 125 * MS, 125 * MS, 750 * MS);
    expect_column(trace.gap_at, 0, 2, 2, 3);
    expect_column(trace.gap_ns, 62500000, 62500000, 250 * MS);
    cr_expect(strstr(notebook.last, "1 of 4 records"), "%s", notebook.last);
    ifl_trace_free(&trace);
}

/* An answer that broke off is none, though a part of it came. */
Test(recorded, bench_serve_with_errors)
{
    static const char text[] =
        "{\"input_lens\": [7, 8], \"output_lens\": [2, 2], \"ttfts\": [0.5, 0.5], "
        "\"itls\": [[0.25], [0.25]], \"start_times\": [0, 1], \"errors\": [\"timeout\", \"\"]}";
    struct ifl_trace trace;
    struct ifl_error error;
    cr_assert_eq(read_text(text, "auto", &trace, &error), 0, "%s", error.text);
    cr_assert_eq(trace.n, 1);
    cr_expect_eq(trace.n_prompt[0], 8);
    cr_expect_eq(trace.n_skipped, 1);
    ifl_trace_free(&trace);
}

/* A run that counts more failures than its requests show. */
Test(recorded, bench_serve_with_failures_that_have_answers)
{
    static const char text[] = "{\"completed\": 0, \"failed\": 2, \"input_lens\": [7, 8], "
                               "\"output_lens\": [2, 0], \"ttfts\": [0.5, 0], "
                               "\"itls\": [[0.25], []], \"start_times\": [0, 1]}";
    struct ifl_trace trace;
    struct ifl_error error;
    cr_assert_eq(read_text(text, "auto", &trace, &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, "failed is 2, but 1 requests have no answer"), "%s", error.text);
    ifl_trace_free(&trace);
}

Test(recorded, sglang_bench_serving_has_no_stamps)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("sglang.jsonl", &notebook);
    cr_assert_eq(trace.n, 3);
    cr_expect(!trace.has_stamps);
    expect_outcomes(trace, e2e_ns, 625 * MS, 625 * MS, S);
    expect_column(trace.gap_at, 0, 1, 3, 3);
    cr_expect(strstr(notebook.last, "another run begins behind request 1"), "%s", notebook.last);
    ifl_trace_free(&trace);
}

Test(recorded, aiperf_with_units)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("aiperf.jsonl", &notebook);
    cr_assert_eq(trace.n, 2);
    expect_column(trace.arrival_ns, 363, 0);
    expect_column(trace.n_prompt, 550, 20);
    expect_column(trace.n_output, 9, 4);
    expect_outcomes(trace, ttft_ns, 255500000, IFL_NEVER);
    expect_outcomes(trace, e2e_ns, 297750000, 2 * S);
    expect_column(trace.gap_at, 0, 2, 2);
    expect_column(trace.gap_ns, 4500000, 5250000);
    cr_expect(strstr(notebook.last, "1 of 3 requests failed"), "%s", notebook.last);
    ifl_trace_free(&trace);
}

Test(recorded, guidellm_over_many_lines)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("guidellm.json", &notebook);
    cr_assert_eq(trace.n, 2);
    expect_column(trace.arrival_ns, 250 * MS, 0);
    expect_column(trace.n_prompt, 256, 300);
    expect_outcomes(trace, ttft_ns, 62500000, IFL_NEVER);
    expect_outcomes(trace, e2e_ns, 2500 * MS, S);
    ifl_trace_free(&trace);
}

/* Two requests queue 0.75 s and 0.625 s after their arrivals, by different clocks. The clocks
 * differ by 0.625 s, and the first request waited 0.125 s for a step to end. */
Test(recorded, llmservingsim_aligns_two_clocks)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("llmservingsim.jsonl", &notebook);
    cr_assert_eq(trace.n, 2);
    expect_column(trace.arrival_ns, 0, 250 * MS);
    expect_outcomes(trace, queue_ns, 125 * MS, 125 * MS);
    expect_outcomes(trace, ttft_ns, 625 * MS, 625 * MS);
    expect_outcomes(trace, e2e_ns, 17625 * MS, 1125 * MS);
    ifl_trace_free(&trace);
}

Test(recorded, our_own_requests)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("requests.csv", &notebook);
    cr_assert_eq(trace.n, 3);
    expect_column(trace.request_id, 7, 3, 4);
    expect_column(trace.arrival_ns, 0, S + 1, 2 * S);
    expect_column(trace.n_prompt, 10, 4000, 40);
    expect_outcomes(trace, queue_ns, 250 * MS, IFL_NEVER, 500 * MS);
    expect_outcomes(trace, ttft_ns, 500 * MS, IFL_NEVER, S);
    expect_outcomes(trace, e2e_ns, 1500 * MS, IFL_NEVER, IFL_NEVER);
    expect_outcomes(trace, preemptions, 1, 0, 2);
    ifl_trace_free(&trace);
}

Test(recorded, outcomes_and_gaps_move_with_their_rows)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = load("bench.json", &notebook);
    struct ifl_error error;
    cr_assert_eq(ifl_trace_sort(&trace, NULL, &error), 0);
    expect_column(trace.request_id, 3, 0, 1);
    expect_outcomes(trace, ttft_ns, 500 * MS, 153857000, 125 * MS);
    expect_column(trace.gap_at, 0, 1, 3, 3);
    expect_column(trace.gap_ns, 250 * MS, 62500000, 62500000);
    ifl_trace_free(&trace);
}

/* ---- refusals ---- */

static void expect_refusal(const char *text, int line, const char *message)
{
    struct ifl_trace trace;
    struct ifl_error error = {0};
    cr_assert_eq(read_text(text, "auto", &trace, &error), IFL_E_INPUT, "accepted: %s", text);
    cr_expect_eq(error.line, line, "%s: line %d", error.text, error.line);
    cr_expect(strstr(error.text, message), "\"%s\" is not in \"%s\"", message, error.text);
}

Test(recorded, wrong_values_are_named)
{
    expect_refusal("{\"input_lens\": [1], \"output_lens\": [2]}\n", 1, "ttfts is missing");
    expect_refusal("{\"input_lens\": [1], \"output_lens\": [2, 3], \"ttfts\": [1], \"itls\": []}",
                   1, "output_lens has 2 entries, expected 1 as in input_lens");
    expect_refusal("{\"input_lens\": [1], \"output_lens\": [2], \"ttfts\": [1], \"itls\": [[-1]]}",
                   1, "itls[0] is -1, expected seconds from 0 to 9.2e9");
    expect_refusal("{\"benchmarks\": [{\"requests\": {\"successful\": 7}}]}", 1,
                   "successful is 7, expected a list of requests");
    expect_refusal("{\"benchmarks\": [{\"requests\": {\"successful\": [3210.0]}}]}", 1,
                   "successful[0] is 3210.0, expected {...}");
    expect_refusal("{\"benchmarks\": [{\"requests\": {\"successful\": []}}, []]}", 1,
                   "benchmarks[1] is [], expected {...}");
    expect_refusal("{\"config\": {}, \"result\": {\"responses\": [null]}}", 1,
                   "responses[0] is null, expected {...}");
    expect_refusal("{\"metadata\": {\"request_start_ns\": 1}, \"metrics\": "
                   "{\"input_sequence_length\": {\"value\": 5, \"unit\": \"tokens\"}, "
                   "\"output_sequence_length\": {\"value\": 5, \"unit\": \"tokens\"}, "
                   "\"request_latency\": {\"value\": 5, \"unit\": \"days\"}}}",
                   1, "unit is \"days\", expected ns, us, ms or sec");
    expect_refusal("{\"input_toks\": 5, \"output_toks\": 3, \"arrival_time\": 1, \"queued_ts\": 9, "
                   "\"scheduled_ts\": 8, \"first_token_ts\": 10, \"last_token_ts\": 11}",
                   1, "scheduled_ts is 8, expected a time not before the one it follows");
    expect_refusal("start,p,o,ttft,e2e,queue\n0,5,5,fast,2,0\n", 2, "ttft is \"fast\"");
    expect_refusal("{\"config\": {}, \"result\": {\"responses\": [{\"prompt_len\": 1}]}}", 1,
                   "output_len is missing");
}

Test(recorded, points_of_a_sweep_are_no_trace)
{
    expect_refusal("point,request_id,status,arrival_s,first_scheduled_s,finish_s,prompt_tokens,"
                   "output_tokens,ttft_s,e2e_s,queue_s,preemptions\n"
                   "0,0,finished,0,0,2,5,5,1,2,0,0\n1,0,finished,0,0,2,5,5,1,2,0,0\n",
                   3, "point is \"1\", expected 0 as above");
}
