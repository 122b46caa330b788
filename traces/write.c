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

/* Returns what fprintf returns. An empty cell for none_ns. */
static int write_ns(FILE *out, int64_t ns, int64_t none_ns)
{
    if (ns == none_ns)
        return 0;
    return fprintf(out, "%" PRId64 ".%09" PRId64, (int64_t)(ns / IFL_NS_PER_S),
                   (int64_t)(ns % IFL_NS_PER_S));
}

static int write_number(FILE *out, int64_t number, int64_t none)
{
    return number == none ? 0 : fprintf(out, "%" PRId64, number);
}

static int write_client(FILE *out, const struct ifl_trace *trace, size_t row)
{
    const uint32_t client = trace->client[row];
    if (!trace->client_names)
        return fprintf(out, "%" PRIu32, client);
    return csv_fwrite(out, trace->client_names[client], strlen(trace->client_names[client]));
}

static int write_cell(FILE *out, const struct ifl_trace *trace, enum trace_column column,
                      size_t row)
{
    switch (column) {
    case TRACE_ARRIVAL:
        return write_ns(out, trace->arrival_ns[row], -1);
    case TRACE_PROMPT:
        return write_number(out, trace->n_prompt[row], 0);
    case TRACE_OUTPUT:
        return write_number(out, trace->n_output[row], 0);
    case TRACE_REQUEST_ID:
        return write_number(out, (int64_t)trace->request_id[row], -1);
    case TRACE_CLIENT:
        return write_client(out, trace, row);
    case TRACE_PRIORITY:
        return write_number(out, trace->priority[row], INT64_MIN);
    case TRACE_TTFT_SLO:
        return write_ns(out, trace->ttft_slo_ns[row], IFL_NEVER);
    case TRACE_TPOT_SLO:
        return write_ns(out, trace->tpot_slo_ns[row], IFL_NEVER);
    case TRACE_MAX_TOKENS:
        return write_number(out, trace->max_tokens[row], 0);
    case TRACE_SAMPLES:
        return write_number(out, trace->samples[row], INT64_MIN);
    case TRACE_SESSION:
        return write_number(out, trace->session[row], 0);
    case TRACE_THINK:
        return write_ns(out, trace->think_ns[row], -1);
    case TRACE_PREFIX_GROUP:
        return write_number(out, trace->prefix_group[row], 0);
    case TRACE_PREFIX_TOKENS:
        return write_number(out, trace->prefix_tokens[row], INT64_MIN);
    default:
        return 0;
    }
}

static void write_header(FILE *out, const struct ifl_trace *trace)
{
    const char *before = "";
    for (int c = 0; c < TRACE_N_CSV_COLUMNS; c++) {
        if (!written(trace, (enum trace_column)c))
            continue;
        fprintf(out, "%s%s", before, trace_inflight_columns[c].name);
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
    write_header(out, trace);
    for (size_t i = 0; i < trace->n && !ferror(out); i++)
        write_row(out, trace, i);
    if (ferror(out) || fflush(out) != 0)
        return ifl_fail(error, IFL_E_IO, "cannot write the trace: %s", strerror(errno));
    return 0;
}
