/* A trace of one format from memory: any bytes give a trace or a one-line error. An accepted trace
 * keeps the contract's ranges and survives being written, read again and sorted. */
#include <string.h>

#include "traces.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static int read_bytes(const void *bytes, size_t n_bytes, const char *format,
                      struct ifl_trace *trace, struct ifl_error *error)
{
    struct trace_input input;
    ifl_require(trace_input_open_memory(&input, "fuzz", bytes, n_bytes, error) == 0);
    const int rc = trace_read_input(&input, format, NULL, trace, error);
    trace_input_close(&input);
    return rc;
}

static void check_refusal(const struct ifl_trace *trace, const struct ifl_error *error)
{
    ifl_require(error->code == IFL_E_INPUT && *error->text && !strchr(error->text, '\n'));
    ifl_require(trace->n == 0 && !trace->arrival_ns && !trace->client_names);
}

static void check_ranges(const struct ifl_trace *trace)
{
    ifl_require(trace->n >= 1 && trace->n_clients >= 1);
    for (size_t i = 0; i < trace->n; i++) {
        ifl_require(trace->arrival_ns[i] >= 0);
        ifl_require(trace->n_prompt[i] >= 1 && trace->n_output[i] >= 1);
        ifl_require(!trace->client || trace->client[i] < trace->n_clients);
        ifl_require(!trace->samples || trace->samples[i] >= 1);
        ifl_require(!trace->prefix_tokens || trace->prefix_tokens[i] <= trace->n_prompt[i]);
        ifl_require(!trace->hash_at || trace->hash_at[i] <= trace->hash_at[i + 1]);
    }
}

static void check_same(const struct ifl_trace *a, const struct ifl_trace *b)
{
    ifl_require(a->n == b->n && a->n_clients == b->n_clients && a->has_stamps == b->has_stamps);
    for (int c = a->has_stamps ? TRACE_ARRIVAL : TRACE_PROMPT; c < TRACE_N_CSV_COLUMNS; c++) {
        const enum trace_column column = (enum trace_column)c;
        ifl_require(trace_column_there(a, column) == trace_column_there(b, column));
        for (size_t i = 0; trace_column_there(a, column) && i < a->n; i++)
            ifl_require(trace_cell(a, column, i) == trace_cell(b, column, i));
    }
}

static void check_rewriting(const struct ifl_trace *trace)
{
    struct ifl_error error;
    struct ifl_trace again;
    char *text = NULL;
    size_t n_text = 0;
    FILE *out = open_memstream(&text, &n_text);
    ifl_require(out && ifl_trace_write(trace, out, &error) == 0 && fclose(out) == 0);
    ifl_require(read_bytes(text, n_text, "auto", &again, &error) == 0);
    check_same(trace, &again);
    ifl_trace_free(&again);
    free(text);
}

static void check_sorting(struct ifl_trace *trace)
{
    struct ifl_error error;
    struct ifl_trace_stats stats;
    ifl_require(ifl_trace_sort(trace, NULL, &error) == 0);
    for (size_t i = 1; i < trace->n; i++)
        ifl_require(trace->arrival_ns[i - 1] <= trace->arrival_ns[i]);
    ifl_require(ifl_trace_measure(trace, &stats, &error) == 0);
    ifl_require(stats.n_hash_hits <= stats.n_hash_ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct ifl_trace trace;
    struct ifl_error error = {0};
    if (read_bytes(bytes, n_bytes, TRACE_FORMAT, &trace, &error) < 0) {
        check_refusal(&trace, &error);
        return 0;
    }
    check_ranges(&trace);
    check_rewriting(&trace);
    check_sorting(&trace);
    ifl_trace_free(&trace);
    return 0;
}
