/* Processed traces of Vidur and Sarathi-Serve: lengths, and in some files arrival times. */
#include "traces.h"

enum { PREFILL, DECODE, ARRIVED };

static const struct trace_csv_column columns[] = {{"num_prefill_tokens", TRACE_NEEDED},
                                                  {"num_decode_tokens", TRACE_NEEDED},
                                                  {"arrived_at", TRACE_OPTIONAL}};

static int take_header(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct trace_rows *rows = self;
    (void)error;
    rows->trace->has_stamps = trace_row_bound(row, ARRIVED);
    return 0;
}

static int take_record(void *self, const struct trace_row *row, struct ifl_error *error)
{
    int64_t arrival_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = trace_row_tokens(row, PREFILL, 0, &prompt, error);
    if (rc == 0)
        rc = trace_row_tokens(row, DECODE, 0, &output, error);
    if (rc == 0 && trace_row_bound(row, ARRIVED))
        rc = trace_row_stamp(row, ARRIVED, &arrival_ns, error);
    return rc < 0 ? rc : trace_rows_add(self, arrival_ns, prompt, output, error);
}

int trace_read_vidur(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_csv_format format = {.columns = columns, .n_columns = 3};
    const struct trace_csv_reader reader = {
        .header = take_header, .record = take_record, .self = rows, .rows = rows};
    return trace_csv_read(input, &format, &reader, error);
}
