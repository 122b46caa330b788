/* Detailed results of `vllm bench serve` and of SGLang's bench_serving: one object per run, with
 * one list per quantity and one entry per request, in seconds. Requests that failed have a text
 * among the errors, and no output or the part that had come.
 * Runs without start_times (before 2025) have no stamps.
 * https://docs.vllm.ai/en/latest/benchmarking, https://docs.sglang.ai */
#include "traces.h"

#include <math.h>

enum { INPUT_LENS, OUTPUT_LENS, TTFTS, ITLS, START_TIMES, ERRORS, N_LISTS };

static const char *const names[N_LISTS] = {"input_lens", "output_lens", "ttfts",
                                           "itls",       "start_times", "errors"};

struct run {
    struct trace_rows *rows;
    const struct trace_record *record;
    const json_t *list[N_LISTS]; /* of equal length; START_TIMES and ERRORS may be NULL */
    bool itls_are_means; /* inflight's own export: their sum is right, but they are no gaps */
};

static int fail_entry(const struct run *run, int list, size_t i, const json_t *entry,
                      const char *expected, struct ifl_error *error)
{
    char name[48];
    snprintf(name, sizeof name, "%s[%zu]", names[list], i);
    return trace_value_fail(run->record, name, entry, expected, error);
}

static int take_tokens(const struct run *run, int list, size_t i, int32_t *tokens,
                       struct ifl_error *error)
{
    const json_t *entry = json_array_get(run->list[list], i);
    const json_int_t value = json_integer_value(entry);
    if (!json_is_integer(entry) || value < 0 || value > INT32_MAX)
        return fail_entry(run, list, i, entry, "a number of tokens", error);
    *tokens = (int32_t)value;
    return 0;
}

static int take_seconds(const struct run *run, int list, size_t i, const json_t *entry, int64_t *ns,
                        struct ifl_error *error)
{
    const double s = json_number_value(entry);
    if (!json_is_number(entry) || !(s >= 0 && s <= (double)TRACE_MAX_S))
        return fail_entry(run, list, i, entry, "seconds from 0 to 9.2e9", error);
    *ns = ifl_ns_from_s(s);
    return 0;
}

/* The end-to-end latency is not in the file: it is the time to the first token plus all gaps. */
static int take_gaps(const struct run *run, size_t i, struct ifl_outcome *outcome,
                     struct ifl_error *error)
{
    const json_t *gaps = json_array_get(run->list[ITLS], i);
    if (!json_is_array(gaps))
        return fail_entry(run, ITLS, i, gaps, "a list of seconds", error);
    outcome->e2e_ns = outcome->ttft_ns;
    for (size_t k = 0; k < json_array_size(gaps); k++) {
        int64_t gap_ns = 0;
        int rc = take_seconds(run, ITLS, i, json_array_get(gaps, k), &gap_ns, error);
        if (rc == 0 && !run->itls_are_means)
            rc = trace_rows_gap(run->rows, gap_ns, error);
        if (rc < 0)
            return rc;
        outcome->e2e_ns = trace_later(outcome->e2e_ns, gap_ns);
    }
    return 0;
}

/* What came of an answer that broke off is none. */
static bool has_failed(const struct run *run, size_t i)
{
    const json_t *text = json_array_get(run->list[ERRORS], i);
    return json_is_string(text) && json_string_length(text) > 0;
}

static int take_request(const struct run *run, size_t i, struct ifl_error *error)
{
    struct ifl_outcome outcome = {IFL_NEVER, IFL_NEVER, IFL_NEVER, -1};
    int64_t arrival_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = take_tokens(run, INPUT_LENS, i, &prompt, error);
    if (rc == 0)
        rc = take_tokens(run, OUTPUT_LENS, i, &output, error);
    if (rc == 0 && run->list[START_TIMES])
        rc = take_seconds(run, START_TIMES, i, json_array_get(run->list[START_TIMES], i),
                          &arrival_ns, error);
    if (rc == 0)
        rc = trace_rows_add(run->rows, arrival_ns, prompt, has_failed(run, i) ? 0 : output, error);
    if (rc <= 0)
        return rc;
    rc = take_seconds(run, TTFTS, i, json_array_get(run->list[TTFTS], i), &outcome.ttft_ns, error);
    if (rc == 0)
        rc = take_gaps(run, i, &outcome, error);
    trace_rows_outcome(run->rows, &outcome);
    return rc;
}

static int find_lists(struct run *run, struct ifl_error *error)
{
    for (int l = 0; l < N_LISTS; l++) {
        const json_t *list = json_object_get(run->record->value, names[l]);
        if ((l == START_TIMES && !list) || (l == ERRORS && !json_is_array(list)))
            continue;
        if (!json_is_array(list))
            return trace_record_fail(run->record, names[l],
                                     "a list with an entry a request, as with --save-detailed",
                                     error);
        run->list[l] = list;
        if (json_array_size(list) != json_array_size(run->list[0]))
            return ifl_fail_at(error, run->record->path, run->record->line, 0,
                               "%s has %zu entries, expected %zu as in %s", names[l],
                               json_array_size(list), json_array_size(run->list[0]), names[0]);
    }
    return 0;
}

/* More failures than requests without an answer: some of the answers are none. */
static int check_failed(const struct run *run, size_t n_failed, struct ifl_error *error)
{
    const json_t *failed = json_object_get(run->record->value, "failed");
    return json_integer_value(failed) > (json_int_t)n_failed
               ? ifl_fail_at(error, run->record->path, run->record->line, 0,
                             "failed is %lld, but %zu requests have no answer, or a text among the "
                             "errors",
                             (long long)json_integer_value(failed), n_failed)
               : 0;
}

static int take_run(void *self, const struct trace_record *record, struct ifl_error *error)
{
    struct run run = {
        .rows = self,
        .record = record,
        .itls_are_means = json_is_true(json_object_get(record->value, "itls_are_means")),
    };
    int rc = find_lists(&run, error);
    if (rc < 0)
        return rc;
    if (run.rows->n_records > 0)
        trace_rows_next_run(run.rows);
    else
        run.rows->trace->has_stamps = run.list[START_TIMES];
    const size_t n_before = run.rows->n_skipped;
    for (size_t i = 0; rc >= 0 && i < json_array_size(run.list[0]); i++)
        rc = take_request(&run, i, error);
    return rc < 0 ? rc : check_failed(&run, run.rows->n_skipped - n_before, error);
}

int trace_read_bench(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_json_reader reader = {take_run, rows, NULL};
    int rc = trace_rows_want_outcomes(rows, TRACE_WITH_GAPS, error);
    if (rc == 0)
        rc = trace_json_objects_read(input, &reader, error);
    trace_rows_rebase(rows);
    return rc;
}
