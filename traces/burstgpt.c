/* BurstGPT: a campus's use of hosted models. A response without tokens is a request that failed.
 * There are two sets of columns; the newer one has sessions. https://github.com/HPMLL/BurstGPT */
#include "traces.h"

enum { STAMP, MODEL, REQUEST, RESPONSE, SESSION };

static const struct trace_csv_column columns[] = {{"Timestamp", TRACE_NEEDED},
                                                  {"Model", TRACE_NEEDED},
                                                  {"Request tokens", TRACE_NEEDED},
                                                  {"Response tokens", TRACE_NEEDED},
                                                  {"Session ID", TRACE_OPTIONAL}};

static int take_header(void *self, const struct trace_row *row, struct ifl_error *error)
{
    const int rc = trace_rows_want(self, TRACE_CLIENT, error);
    return rc == 0 && trace_row_bound(row, SESSION) ? trace_rows_want(self, TRACE_SESSION, error)
                                                    : rc;
}

static int take_record(void *self, const struct trace_row *row, struct ifl_error *error)
{
    int64_t stamp_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = trace_row_stamp(row, STAMP, &stamp_ns, error);
    if (rc == 0)
        rc = trace_row_tokens(row, REQUEST, 0, &prompt, error);
    if (rc == 0)
        rc = trace_row_tokens(row, RESPONSE, 0, &output, error);
    if (rc == 0)
        rc = trace_rows_add(self, stamp_ns, prompt, output, error);
    if (rc <= 0)
        return rc;
    rc = trace_rows_name(self, TRACE_CLIENT, trace_row_text(row, MODEL), error);
    return rc == 0 && trace_row_bound(row, SESSION)
               ? trace_rows_name(self, TRACE_SESSION, trace_row_text(row, SESSION), error)
               : rc;
}

int trace_read_burstgpt(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_csv_format format = {.columns = columns, .n_columns = 5};
    const struct trace_csv_reader reader = {
        .header = take_header, .record = take_record, .self = rows, .rows = rows};
    rows->skipped = "requests failed (no response tokens) or have no prompt";
    const int rc = trace_csv_read(input, &format, &reader, error);
    rows->trace->has_stamps = true;
    trace_rows_rebase(rows);
    return rc;
}
