/* LLMServingSim: one request per line with its token counts and its arrival in nanoseconds. Token
 * ids in the file are not read. https://github.com/casys-kaist/LLMServingSim */
#include "traces.h"

static int take_record(void *self, const struct trace_record *record, struct ifl_error *error)
{
    int64_t stamp_ns = 0;
    int32_t prompt = 0, output = 0;
    if (json_object_get(record->value, "sub_requests"))
        return ifl_fail_at(error, record->path, record->line, 0,
                           "an agentic session with sub_requests, expected one request a line");
    int rc = trace_record_tokens(record, "input_toks", &prompt, error);
    if (rc == 0)
        rc = trace_record_tokens(record, "output_toks", &output, error);
    if (rc == 0)
        rc = trace_record_stamp(record, "arrival_time_ns", 1, &stamp_ns, error);
    return rc < 0 ? rc : trace_rows_add(self, stamp_ns, prompt, output, error);
}

int trace_read_llmservingsim(struct trace_input *input, struct trace_rows *rows,
                             struct ifl_error *error)
{
    const struct trace_json_reader reader = {take_record, rows, rows};
    const int rc = trace_jsonl_read(input, &reader, error);
    rows->trace->has_stamps = true;
    trace_rows_rebase(rows);
    return rc;
}
