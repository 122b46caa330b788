/* benchmarks.json of GuideLLM: an object with one benchmark per load, each with its requests.
 * Requests that failed or did not end are not read. https://github.com/vllm-project/guidellm */
#include "traces.h"

static int take_request(struct trace_rows *rows, const struct trace_record *request,
                        struct ifl_error *error)
{
    struct ifl_outcome outcome = {IFL_NEVER, IFL_NEVER, IFL_NEVER, -1};
    const json_t *ttft = json_object_get(request->value, "time_to_first_token_ms");
    int64_t arrival_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = trace_record_tokens(request, "prompt_tokens", &prompt, error);
    if (rc == 0)
        rc = trace_record_tokens(request, "output_tokens", &output, error);
    if (rc == 0)
        rc = trace_record_stamp(request, "request_start_time", IFL_NS_PER_S, &arrival_ns, error);
    if (rc == 0)
        rc = trace_record_stamp(request, "request_latency", IFL_NS_PER_S, &outcome.e2e_ns, error);
    if (rc == 0 && ttft && !json_is_null(ttft)) /* null without streaming */
        rc = trace_record_stamp(request, "time_to_first_token_ms", IFL_NS_PER_S / 1000,
                                &outcome.ttft_ns, error);
    if (rc == 0)
        rc = trace_rows_add(rows, arrival_ns, prompt, output, error);
    if (rc > 0)
        trace_rows_outcome(rows, &outcome);
    return rc;
}

static int take_benchmark(struct trace_rows *rows, const struct trace_record *benchmark,
                          struct ifl_error *error)
{
    struct trace_record requests;
    int rc = trace_record_object(benchmark, "requests", &requests, error);
    if (rc < 0)
        return rc;
    if (rows->n_records > 0)
        trace_rows_next_run(rows);
    return trace_record_each(&requests, "successful", "a list of requests", take_request, rows,
                             error);
}

static int take_report(void *self, const struct trace_record *record, struct ifl_error *error)
{
    return trace_record_each(record, "benchmarks", "a list of benchmarks", take_benchmark, self,
                             error);
}

int trace_read_guidellm(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_json_reader reader = {take_report, rows, NULL};
    int rc = trace_rows_want_outcomes(rows, TRACE_WITHOUT_GAPS, error);
    if (rc < 0)
        return rc;
    rows->trace->has_stamps = true;
    rc = trace_json_objects_read(input, &reader, error);
    trace_rows_rebase(rows);
    return rc;
}
