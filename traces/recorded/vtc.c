/* Results of the fairness benchmark of VTC (Sheng et al., OSDI 2024): one object per experiment,
 * with its responses, in seconds. A client is an adapter; a latency of -1 marks a refused request.
 * https://github.com/Ying1123/VTC-artifact */
#include "traces.h"

static bool refused(const struct trace_record *response)
{
    return json_number_value(json_object_get(response->value, "request_latency")) < 0;
}

static int take_outcome(const struct trace_record *response, struct ifl_outcome *outcome,
                        struct ifl_error *error)
{
    *outcome = (struct ifl_outcome){IFL_NEVER, IFL_NEVER, IFL_NEVER, -1};
    if (refused(response))
        return 0;
    const int rc =
        trace_record_stamp(response, "first_token_latency", IFL_NS_PER_S, &outcome->ttft_ns, error);
    return rc < 0 ? rc
                  : trace_record_stamp(response, "request_latency", IFL_NS_PER_S, &outcome->e2e_ns,
                                       error);
}

static int take_response(struct trace_rows *rows, const struct trace_record *response,
                         struct ifl_error *error)
{
    const char *client = NULL;
    struct ifl_outcome outcome;
    int64_t arrival_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = trace_record_tokens(response, "prompt_len", &prompt, error);
    if (rc == 0)
        rc = trace_record_tokens(response, "output_len", &output, error);
    if (rc == 0)
        rc = trace_record_stamp(response, "req_time", IFL_NS_PER_S, &arrival_ns, error);
    if (rc == 0)
        rc = take_outcome(response, &outcome, error);
    if (rc == 0 && !(client = trace_record_name(response, "adapter_dir", error)))
        rc = error->code;
    if (rc == 0)
        rc = trace_rows_add(rows, arrival_ns, prompt, output, error);
    if (rc <= 0)
        return rc;
    trace_rows_outcome(rows, &outcome);
    return trace_rows_name(rows, TRACE_CLIENT, client, error);
}

static int take_experiment(void *self, const struct trace_record *record, struct ifl_error *error)
{
    struct trace_rows *rows = self;
    struct trace_record result;
    int rc = trace_record_object(record, "result", &result, error);
    if (rc < 0)
        return rc;
    if (rows->n_records > 0)
        trace_rows_next_run(rows);
    return trace_record_each(&result, "responses", "a list", take_response, rows, error);
}

int trace_read_vtc(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_json_reader reader = {take_experiment, rows, NULL};
    int rc = trace_rows_want(rows, TRACE_CLIENT, error);
    if (rc == 0)
        rc = trace_rows_want_outcomes(rows, TRACE_WITHOUT_GAPS, error);
    if (rc < 0)
        return rc;
    rows->trace->has_stamps = true;
    return trace_json_objects_read(input, &reader, error);
}
