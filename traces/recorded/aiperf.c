/* profile_export.jsonl of NVIDIA's AIPerf: one request per line, each metric with its unit.
 * Requests that failed or were cancelled have no metrics. https://github.com/ai-dynamo/aiperf,
 * docs/tutorials/working-with-profile-exports.md */
#include "traces.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t ns;
} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"sec", IFL_NS_PER_S}, {"s", IFL_NS_PER_S}};

/* {"value": ..., "unit": ...} */
static int take_unit(const struct trace_record *metric, int64_t *unit_ns, struct ifl_error *error)
{
    const char *unit = json_string_value(json_object_get(metric->value, "unit"));
    for (size_t i = 0; unit && i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0) {
            *unit_ns = units[i].ns;
            return 0;
        }
    return trace_record_fail(metric, "unit", "ns, us, ms or sec", error);
}

static int take_time(const struct trace_record *metrics, const char *name, int64_t *ns,
                     struct ifl_error *error)
{
    struct trace_record metric;
    int64_t unit_ns = 1;
    int rc = trace_record_object(metrics, name, &metric, error);
    if (rc == 0)
        rc = take_unit(&metric, &unit_ns, error);
    return rc < 0 ? rc : trace_record_stamp(&metric, "value", unit_ns, ns, error);
}

static int take_tokens(const struct trace_record *metrics, const char *name, int32_t *tokens,
                       struct ifl_error *error)
{
    struct trace_record metric;
    const int rc = trace_record_object(metrics, name, &metric, error);
    return rc < 0 ? rc : trace_record_tokens(&metric, "value", tokens, error);
}

/* The gaps between tokens, which are there only for streaming clients. */
static int take_gaps(struct trace_rows *rows, const struct trace_record *metrics,
                     struct ifl_error *error)
{
    const json_t *gaps = json_object_get(metrics->value, "inter_chunk_latency");
    struct trace_record metric = {metrics->path, metrics->line, gaps};
    int64_t unit_ns = 1, gap_ns = 0;
    const json_t *list = json_object_get(gaps, "value");
    if (!json_is_array(list))
        return 0;
    int rc = take_unit(&metric, &unit_ns, error);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        json_t *alone = json_pack("{sO}", "inter_chunk_latency", json_array_get(list, i));
        if (!alone)
            return ifl_fail_nomem(error);
        const struct trace_record gap = {metrics->path, metrics->line, alone};
        rc = trace_record_stamp(&gap, "inter_chunk_latency", unit_ns, &gap_ns, error);
        if (rc == 0)
            rc = trace_rows_gap(rows, gap_ns, error);
        json_decref(alone);
    }
    return rc;
}

static int take_success(struct trace_rows *rows, const struct trace_record *metrics,
                        int64_t arrival_ns, struct ifl_error *error)
{
    struct ifl_outcome outcome = {IFL_NEVER, IFL_NEVER, IFL_NEVER, -1};
    int32_t prompt = 0, output = 0;
    int rc = take_tokens(metrics, "input_sequence_length", &prompt, error);
    if (rc == 0)
        rc = take_tokens(metrics, "output_sequence_length", &output, error);
    if (rc == 0)
        rc = take_time(metrics, "request_latency", &outcome.e2e_ns, error);
    if (rc == 0 && json_object_get(metrics->value, "time_to_first_token"))
        rc = take_time(metrics, "time_to_first_token", &outcome.ttft_ns, error);
    if (rc == 0)
        rc = trace_rows_add(rows, arrival_ns, prompt, output, error);
    if (rc <= 0)
        return rc;
    trace_rows_outcome(rows, &outcome);
    return take_gaps(rows, metrics, error);
}

static int take_record(void *self, const struct trace_record *record, struct ifl_error *error)
{
    struct trace_record metadata, metrics;
    int64_t arrival_ns = 0;
    int rc = trace_record_object(record, "metadata", &metadata, error);
    if (rc == 0)
        rc = trace_record_stamp(&metadata, "request_start_ns", 1, &arrival_ns, error);
    if (rc < 0)
        return rc;
    const json_t *trouble = json_object_get(record->value, "error");
    if (trouble && !json_is_null(trouble))
        return trace_rows_add(self, arrival_ns, 0, 0, error);
    rc = trace_record_object(record, "metrics", &metrics, error);
    return rc < 0 ? rc : take_success(self, &metrics, arrival_ns, error);
}

int trace_read_aiperf(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_json_reader reader = {take_record, rows, rows};
    int rc = trace_rows_want_outcomes(rows, TRACE_WITH_GAPS, error);
    if (rc < 0)
        return rc;
    rows->skipped = "requests failed or have no tokens";
    rows->trace->has_stamps = true;
    rc = trace_jsonl_read(input, &reader, error);
    trace_rows_rebase(rows);
    return rc;
}
