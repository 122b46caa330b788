/* Preconditions of traces/, each broken once. */
#include "traces.h"
#include "violates.h"

static struct ifl_error error;
static struct ifl_trace trace = {.n_clients = 1};
static struct trace_rows rows = {.trace = &trace, .path = "rows"};
static int32_t none[1] = {0}, one[1] = {1};

/* A trace of one row with a prompt of no tokens. */
static struct ifl_trace without_prompt(void)
{
    static int64_t arrival_ns[1];
    return (struct ifl_trace){.n = 1, .arrival_ns = arrival_ns, .n_prompt = none, .n_output = one};
}

VIOLATES(numbers, whole, trace_whole, "text[n]")
{
    int64_t value;
    trace_whole("1234", 2, &value);
}

VIOLATES(numbers, seconds, trace_seconds, "text[n]")
{
    int64_t ns;
    trace_seconds("12.5", 2, &ns);
}

VIOLATES(rows, columns_are_wanted_first, trace_rows_want, "trace->n == 0")
{
    trace.n = 1;
    trace_rows_want(&rows, TRACE_PRIORITY, &error);
}

VIOLATES(rows, outcomes_are_wanted_first, trace_rows_want_outcomes, "trace->n == 0")
{
    trace.n = 1;
    trace_rows_want_outcomes(&rows, TRACE_WITH_GAPS, &error);
}

VIOLATES(rows, client_of_no_row, trace_rows_name, "trace->n > 0")
{
    trace_rows_name(&rows, TRACE_CLIENT, "a", &error);
}

VIOLATES(rows, hash_ids_of_no_row, trace_rows_hash_ids, "trace->n > 0")
{
    trace_rows_hash_ids(&rows, 1, &error);
}

VIOLATES(rows, outcome_not_wanted, trace_rows_outcome, "trace->outcome")
{
    const struct ifl_outcome outcome = {0};
    trace.n = 1;
    trace_rows_outcome(&rows, &outcome);
}

VIOLATES(rows, gap_not_wanted, trace_rows_gap, "trace->gap_at")
{
    trace.n = 1;
    trace_rows_gap(&rows, 1, &error);
}

VIOLATES(attributes, cells_of_no_row, trace_attributes_take_row, "trace->n > 0")
{
    trace_attributes_take_row(&rows, NULL, 0, &error);
}

VIOLATES(attributes, keys_of_no_row, trace_attributes_take_record, "trace->n > 0")
{
    trace_attributes_take_record(&rows, NULL, &error);
}

VIOLATES(csv, columns, trace_csv_read, "TRACE_CSV_MAX_COLUMNS")
{
    const struct trace_csv_format format = {.n_columns = TRACE_CSV_MAX_COLUMNS + 1};
    trace_csv_read(NULL, &format, NULL, &error);
}

VIOLATES(notes, room, trace_printable, "size > 0")
{
    char out[1];
    trace_printable(out, 0, "text", 4);
}

VIOLATES(unpack, room, ifl_unpack, "cap > 0")
{
    size_t n;
    ifl_unpack(NULL, NULL, 0, &n, &error);
}

/* A list is no object. */
static struct trace_record list_record(void)
{
    return (struct trace_record){"list", 1, json_array()};
}

VIOLATES(json, fail, trace_record_fail, "json_is_object")
{
    const struct trace_record record = list_record();
    trace_record_fail(&record, "key", "a number", &error);
}

VIOLATES(json, object, trace_record_object, "json_is_object")
{
    const struct trace_record record = list_record();
    struct trace_record inner;
    trace_record_object(&record, "key", &inner, &error);
}

VIOLATES(json, name, trace_record_name, "json_is_object")
{
    const struct trace_record record = list_record();
    trace_record_name(&record, "key", &error);
}

VIOLATES(json, whole, trace_record_whole, "json_is_object")
{
    const struct trace_record record = list_record();
    int64_t value;
    trace_record_whole(&record, "key", 0, 1, &value, &error);
}

VIOLATES(json, stamp, trace_record_stamp, "json_is_object")
{
    const struct trace_record record = list_record();
    int64_t ns;
    trace_record_stamp(&record, "key", 1, &ns, &error);
}

VIOLATES(table, order, trace_gather, "are_rows")
{
    const struct ifl_trace whole = without_prompt();
    uint64_t order[1] = {1};
    struct ifl_trace part;
    trace_gather(&whole, order, 1, &part, &error);
}

VIOLATES(lengths, cut, ifl_trace_cut, "trace_has_lengths")
{
    const struct ifl_trace whole = without_prompt();
    const struct ifl_trace_window window = {0};
    struct ifl_trace cut;
    ifl_trace_cut(&whole, &window, "path", NULL, &cut, &error);
}

VIOLATES(lengths, arrive, ifl_trace_arrive, "trace_has_lengths")
{
    const struct ifl_arrivals arrivals = {.process = IFL_ARRIVE_BURST};
    struct ifl_trace of = without_prompt();
    ifl_trace_arrive(&of, &arrivals, "path", NULL, &error);
}

VIOLATES(lengths, measure, ifl_trace_measure, "trace_has_lengths")
{
    const struct ifl_trace of = without_prompt();
    struct ifl_trace_stats stats;
    ifl_trace_measure(&of, &stats, &error);
}

VIOLATES(lengths, write, ifl_trace_write, "trace_has_lengths")
{
    const struct ifl_trace of = without_prompt();
    ifl_trace_write(&of, stdout, &error);
}

VIOLATES(lengths, share, ifl_trace_share_prefix, "trace_has_lengths")
{
    struct ifl_trace of = without_prompt();
    ifl_trace_share_prefix(&of, 1, &error);
}

VIOLATES(lengths, sort, ifl_trace_sort, "trace_has_lengths")
{
    struct ifl_trace of = without_prompt();
    ifl_trace_sort(&of, NULL, &error);
}

VIOLATES(retries, repeated, ifl_trace_repeated, "trace->retry_of")
{
    const struct ifl_trace of = without_prompt();
    size_t *before;
    ifl_trace_repeated(&of, &before, &error);
}
