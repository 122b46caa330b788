/* Requests of a real vLLM as LLMServingSim recorded them, one request per line, in seconds.
 *
 * The arrival is on the wall clock, all later times are on a monotonic clock. The least time from
 * arrival to queue aligns the two clocks: vLLM notices requests between two steps, so this is a
 * request that found an idle engine or the end of a step. Latencies count from the arrival. Counted
 * from queued_ts, as LLMServingSim does, they lack the wait for the step that was running.
 * https://github.com/casys-kaist/LLMServingSim */
#include "traces.h"

struct run {
    struct trace_rows *rows;
    int64_t clocks_apart_ns; /* monotonic - wall, at most */
};

static int take_times(const struct trace_record *record, int64_t *arrival_ns, int64_t times_ns[4],
                      struct ifl_error *error)
{
    static const char *const keys[] = {"queued_ts", "scheduled_ts", "first_token_ts",
                                       "last_token_ts"};
    int rc = trace_record_stamp(record, "arrival_time", IFL_NS_PER_S, arrival_ns, error);
    for (int i = 0; rc == 0 && i < 4; i++)
        rc = trace_record_stamp(record, keys[i], IFL_NS_PER_S, &times_ns[i], error);
    for (int i = 1; rc == 0 && i < 4; i++)
        if (times_ns[i] < times_ns[i - 1])
            rc = trace_record_fail(record, keys[i], "a time not before the one it follows", error);
    return rc;
}

static int take_record(void *self, const struct trace_record *record, struct ifl_error *error)
{
    struct run *run = self;
    int64_t arrival_ns = 0, times_ns[4] = {0};
    int32_t prompt = 0, output = 0;
    int rc = trace_record_tokens(record, "input_toks", &prompt, error);
    if (rc == 0)
        rc = trace_record_tokens(record, "output_toks", &output, error);
    if (rc == 0)
        rc = take_times(record, &arrival_ns, times_ns, error);
    if (rc == 0)
        rc = trace_rows_add(run->rows, arrival_ns, prompt, output, error);
    if (rc <= 0)
        return rc;
    const struct ifl_outcome outcome = {times_ns[1] - arrival_ns, times_ns[2] - arrival_ns,
                                        times_ns[3] - arrival_ns, -1};
    if (times_ns[0] - arrival_ns < run->clocks_apart_ns)
        run->clocks_apart_ns = times_ns[0] - arrival_ns;
    trace_rows_outcome(run->rows, &outcome);
    return 0;
}

static void align_clocks(struct ifl_trace *trace, int64_t apart_ns)
{
    for (size_t i = 0; i < trace->n; i++) {
        trace->outcome[i].queue_ns -= apart_ns;
        trace->outcome[i].ttft_ns -= apart_ns;
        trace->outcome[i].e2e_ns -= apart_ns;
    }
}

int trace_read_llmservingsim_run(struct trace_input *input, struct trace_rows *rows,
                                 struct ifl_error *error)
{
    struct run run = {.rows = rows, .clocks_apart_ns = INT64_MAX};
    const struct trace_json_reader reader = {take_record, &run, rows};
    int rc = trace_rows_want_outcomes(rows, TRACE_WITHOUT_GAPS, error);
    if (rc < 0)
        return rc;
    rows->trace->has_stamps = true;
    rc = trace_jsonl_read(input, &reader, error);
    align_clocks(rows->trace, run.clocks_apart_ns);
    trace_rows_rebase(rows);
    return rc;
}
