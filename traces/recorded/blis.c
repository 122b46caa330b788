/* Spans of vLLM as inference-sim (BLIS) recorded them, flattened: one row per request, in seconds.
 * ttft and e2e are those that the server traced, so they include its own handling of the request.
 * https://github.com/inference-sim/inference-sim */
#include "traces.h"

enum { START, PROMPT, OUTPUT, TTFT, E2E, QUEUE, N_COLUMNS };

static const struct trace_csv_column columns[N_COLUMNS] = {
    [START] = {"start", TRACE_NEEDED}, [PROMPT] = {"p", TRACE_NEEDED},
    [OUTPUT] = {"o", TRACE_NEEDED},    [TTFT] = {"ttft", TRACE_NEEDED},
    [E2E] = {"e2e", TRACE_NEEDED},     [QUEUE] = {"queue", TRACE_NEEDED},
};

static int take_header(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct trace_rows *rows = self;
    (void)row;
    rows->trace->has_stamps = true;
    return trace_rows_want_outcomes(rows, TRACE_WITHOUT_GAPS, error);
}

static int take_record(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct ifl_outcome outcome = {.preemptions = -1};
    int64_t arrival_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = trace_row_stamp(row, START, &arrival_ns, error);
    if (rc == 0)
        rc = trace_row_tokens(row, PROMPT, 0, &prompt, error);
    if (rc == 0)
        rc = trace_row_tokens(row, OUTPUT, 0, &output, error);
    if (rc == 0)
        rc = trace_row_stamp(row, QUEUE, &outcome.queue_ns, error);
    if (rc == 0)
        rc = trace_row_stamp(row, TTFT, &outcome.ttft_ns, error);
    if (rc == 0)
        rc = trace_row_stamp(row, E2E, &outcome.e2e_ns, error);
    if (rc == 0)
        rc = trace_rows_add(self, arrival_ns, prompt, output, error);
    if (rc > 0)
        trace_rows_outcome(self, &outcome);
    return rc < 0 ? rc : 0;
}

int trace_read_blis(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_csv_format format = {.columns = columns, .n_columns = N_COLUMNS};
    const struct trace_csv_reader reader = {
        .header = take_header, .record = take_record, .self = rows, .rows = rows};
    return trace_csv_read(input, &format, &reader, error);
}
