/* Attributes that a request of any format may have: client, priority, due times and max_tokens,
 * under the names of inflight's own CSV.
 *
 *   - In other CSV files they are columns; an empty cell means "none".
 *   - In JSON records they are keys. An attribute that the first record lacks must be in no record.
 *   - The attribute `client` takes precedence over a format's own name for clients. */
#include "traces.h"

#include <string.h>

const struct trace_csv_column trace_attribute_columns[TRACE_N_ATTRIBUTES] = {
    {"client", TRACE_OPTIONAL},     {"priority", TRACE_OPTIONAL},   {"ttft_slo_s", TRACE_OPTIONAL},
    {"tpot_slo_s", TRACE_OPTIONAL}, {"max_tokens", TRACE_OPTIONAL},
};

static const enum trace_column kept_in[TRACE_N_ATTRIBUTES] = {
    TRACE_CLIENT, TRACE_PRIORITY, TRACE_TTFT_SLO, TRACE_TPOT_SLO, TRACE_MAX_TOKENS};

static int want(struct trace_rows *rows, size_t attribute, struct ifl_error *error)
{
    rows->clients_are_attributes |= kept_in[attribute] == TRACE_CLIENT;
    rows->attributes |= 1u << attribute;
    return trace_rows_want(rows, kept_in[attribute], error);
}

static int name_client(struct trace_rows *rows, const char *name, struct ifl_error *error)
{
    return trace_names_number(&rows->clients, name, &rows->trace->client[rows->trace->n - 1],
                              error);
}

/* ---- columns ---- */

int trace_attributes_want_row(struct trace_rows *rows, const struct trace_row *row, size_t first,
                              struct ifl_error *error)
{
    int rc = 0;
    for (size_t a = 0; rc == 0 && a < TRACE_N_ATTRIBUTES; a++)
        if (trace_row_bound(row, first + a))
            rc = want(rows, a, error);
    return rc;
}

int trace_attribute_take_cell(struct trace_rows *rows, const struct trace_row *row, size_t column,
                              enum trace_column attribute, struct ifl_error *error)
{
    const struct ifl_trace *trace = rows->trace;
    const size_t i = trace->n - 1;
    switch (attribute) {
    case TRACE_CLIENT:
        return name_client(rows, trace_row_text(row, column), error);
    case TRACE_PRIORITY:
        return trace_row_whole_or(row, column, INT32_MIN, 0, &trace->priority[i], error);
    case TRACE_TTFT_SLO:
        return trace_row_seconds_or(row, column, IFL_NEVER, &trace->ttft_slo_ns[i], error);
    case TRACE_TPOT_SLO:
        return trace_row_seconds_or(row, column, IFL_NEVER, &trace->tpot_slo_ns[i], error);
    case TRACE_MAX_TOKENS:
        return trace_row_whole_or(row, column, 1, 0, &trace->max_tokens[i], error);
    default:
        return 0;
    }
}

int trace_attributes_take_row(struct trace_rows *rows, const struct trace_row *row, size_t first,
                              struct ifl_error *error)
{
    int rc = 0;
    for (size_t a = 0; rc == 0 && a < TRACE_N_ATTRIBUTES; a++)
        if (rows->attributes >> a & 1)
            rc = trace_attribute_take_cell(rows, row, first + a, kept_in[a], error);
    return rc;
}

/* ---- keys ---- */

static bool has(const struct trace_record *record, size_t attribute)
{
    const json_t *value = json_object_get(record->value, trace_attribute_columns[attribute].name);
    return value && !json_is_null(value);
}

int trace_attributes_want_record(struct trace_rows *rows, const struct trace_record *record,
                                 struct ifl_error *error)
{
    int rc = 0;
    for (size_t a = 0; rc == 0 && a < TRACE_N_ATTRIBUTES; a++)
        if (json_object_get(record->value, trace_attribute_columns[a].name))
            rc = want(rows, a, error);
    return rc;
}

/* The client is a name or a number. */
static int take_client(struct trace_rows *rows, const struct trace_record *record,
                       struct ifl_error *error)
{
    const json_t *value = json_object_get(record->value, "client");
    char number[24];
    const char *name = number;
    if (!value || json_is_null(value))
        return name_client(rows, "", error);
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else if (json_is_string(value))
        name = trace_record_name(record, "client", error);
    else
        return trace_record_fail(record, "client", "a text on one line or a whole number", error);
    return name ? name_client(rows, name, error) : error->code;
}

static int take_whole(const struct trace_record *record, size_t attribute, int32_t min,
                      int32_t *cell, struct ifl_error *error)
{
    int64_t value = 0;
    const int rc = has(record, attribute)
                       ? trace_record_whole(record, trace_attribute_columns[attribute].name, min,
                                            INT32_MAX, &value, error)
                       : 0;
    *cell = (int32_t)value;
    return rc;
}

static int take_due(const struct trace_record *record, size_t attribute, int64_t *cell,
                    struct ifl_error *error)
{
    *cell = IFL_NEVER;
    return has(record, attribute)
               ? trace_record_stamp(record, trace_attribute_columns[attribute].name, IFL_NS_PER_S,
                                    cell, error)
               : 0;
}

static int take_key(struct trace_rows *rows, const struct trace_record *record, size_t attribute,
                    struct ifl_error *error)
{
    const struct ifl_trace *trace = rows->trace;
    const size_t i = trace->n - 1;
    switch (kept_in[attribute]) {
    case TRACE_CLIENT:
        return take_client(rows, record, error);
    case TRACE_PRIORITY:
        return take_whole(record, attribute, INT32_MIN, &trace->priority[i], error);
    case TRACE_TTFT_SLO:
        return take_due(record, attribute, &trace->ttft_slo_ns[i], error);
    case TRACE_TPOT_SLO:
        return take_due(record, attribute, &trace->tpot_slo_ns[i], error);
    default:
        return take_whole(record, attribute, 1, &trace->max_tokens[i], error);
    }
}

int trace_attributes_take_record(struct trace_rows *rows, const struct trace_record *record,
                                 struct ifl_error *error)
{
    int rc = 0;
    for (size_t a = 0; rc == 0 && a < TRACE_N_ATTRIBUTES; a++)
        if (rows->attributes >> a & 1)
            rc = take_key(rows, record, a, error);
        else if (has(record, a))
            rc = trace_record_fail(record, trace_attribute_columns[a].name,
                                   "it in the first record, too, or in none", error);
    return rc;
}
