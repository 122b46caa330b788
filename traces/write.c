/* inflight's own CSV, exact to the nanosecond. Reading it back gives the same trace. */
#include "traces.h"

#include <csv.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static bool written(const struct ifl_trace *trace, enum trace_column column)
{
    return column == TRACE_ARRIVAL ? trace->has_stamps : trace_column_there(trace, column);
}

/* Returns what fprintf returns. */
static int write_seconds(FILE *out, int64_t ns)
{
    return fprintf(out, "%" PRId64 ".%09" PRId64, (int64_t)(ns / IFL_NS_PER_S),
                   (int64_t)(ns % IFL_NS_PER_S));
}

static int write_name(FILE *out, const char *name)
{
    return csv_fwrite(out, name, strlen(name));
}

static int write_client(FILE *out, const struct ifl_trace *trace, size_t row)
{
    const uint32_t client = trace->client[row];
    if (!trace->client_names)
        return fprintf(out, "%" PRIu32, client);
    return write_name(out, trace->client_names[client]);
}

/* A cell is empty if it says nothing. Where a number stands for that, the number is written. */
static int write_cell(FILE *out, const struct ifl_trace *trace, enum trace_column column,
                      size_t row)
{
    const struct trace_column_spec *spec = &trace_columns[column];
    const int64_t value = trace_cell(trace, column, row);
    switch (spec->kind) {
    case TRACE_IS_CLIENT:
        return write_client(out, trace, row);
    case TRACE_IS_MODEL:
        return value == spec->absent ? 0 : write_name(out, trace->model_names[value - 1]);
    case TRACE_IS_ADAPTER:
        return value == spec->absent ? 0 : write_name(out, trace->adapter_names[value - 1]);
    case TRACE_IS_SECONDS:
        return value == spec->absent ? 0 : write_seconds(out, value);
    default:
        return value < spec->least ? 0 : fprintf(out, "%" PRId64, value);
    }
}

static void write_header(FILE *out, const struct ifl_trace *trace)
{
    const char *before = "";
    for (int c = 0; c < TRACE_N_CSV_COLUMNS; c++) {
        if (!written(trace, (enum trace_column)c))
            continue;
        fprintf(out, "%s%s", before, trace_columns[c].name);
        before = ",";
    }
    fputc('\n', out);
}

static void write_row(FILE *out, const struct ifl_trace *trace, size_t row)
{
    const char *before = "";
    for (int c = 0; c < TRACE_N_CSV_COLUMNS; c++) {
        if (!written(trace, (enum trace_column)c))
            continue;
        fputs(before, out);
        write_cell(out, trace, (enum trace_column)c, row);
        before = ",";
    }
    fputc('\n', out);
}

int ifl_trace_write(const struct ifl_trace *trace, FILE *out, struct ifl_error *error)
{
    ifl_assert(trace_has_lengths(trace));
    write_header(out, trace);
    for (size_t i = 0; i < trace->n && !ferror(out); i++)
        write_row(out, trace, i);
    if (ferror(out) || fflush(out) != 0)
        return ifl_fail(error, IFL_E_IO, "cannot write the trace: %s", strerror(errno));
    return 0;
}
