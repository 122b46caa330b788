/* The attributes of inflight/attributes.h, which a file may have beside what its format lists.
 *
 *   - In CSV files they are columns; an empty cell means "none".
 *   - In JSON records they are keys. An attribute that the first record lacks must be in no record.
 *   - An attribute takes precedence over a format's own name for it, such as that of clients. */
#include "traces.h"

static int want(struct trace_rows *rows, enum trace_column column, struct ifl_error *error)
{
    rows->attributes |= UINT64_C(1) << column;
    return trace_rows_want(rows, column, error);
}

static void say(const struct trace_rows *rows, enum trace_column column, int64_t value)
{
    trace_set_cell(rows->trace, column, rows->trace->n - 1, value);
}

/* A server ends an answer at its limit: policies rely on it, and a replica of which requests pass
 * theirs may come to a standstill. Fills `expected` if the limit of the last row is less than its
 * answer. */
static bool is_passed(const struct trace_rows *rows, enum trace_column column, int64_t limit,
                      char expected[64])
{
    const int32_t n_output = rows->trace->n_output[rows->trace->n - 1];
    if (column != TRACE_MAX_TOKENS || limit == 0 || limit >= n_output)
        return false;
    snprintf(expected, 64, "at least the tokens of the answer, %d", n_output);
    return true;
}

/* ---- names ---- */

/* A client without a name is a client, too. */
static int number_name(struct trace_rows *rows, enum trace_column column, const char *name,
                       int64_t *value, struct ifl_error *error)
{
    const bool may_lack = trace_columns[column].kind != TRACE_IS_CLIENT;
    uint32_t number = 0;
    *value = 0;
    if (may_lack && name[0] == '\0')
        return 0;
    const int rc = trace_names_number(&rows->names[column], name, &number, error);
    *value = (int64_t)number + may_lack;
    return rc;
}

int trace_rows_name(struct trace_rows *rows, enum trace_column column, const char *name,
                    struct ifl_error *error)
{
    ifl_assert(rows->trace->n > 0);
    int64_t value;
    if (rows->attributes >> column & 1)
        return 0;
    const int rc = number_name(rows, column, name, &value, error);
    if (rc == 0)
        say(rows, column, value);
    return rc;
}

/* ---- columns ---- */

int trace_attributes_want_row(struct trace_rows *rows, const struct trace_row *row, size_t first,
                              size_t n, struct ifl_error *error)
{
    int rc = 0;
    for (size_t a = 0; rc == 0 && a < n; a++)
        if (trace_row_bound(row, first + a))
            rc = want(rows, (enum trace_column)(TRACE_FIRST_ATTRIBUTE + a), error);
    return rc;
}

static int64_t most(const struct trace_column_spec *spec)
{
    return spec->size_bytes == sizeof(int32_t) ? INT32_MAX : INT64_MAX;
}

static int read_cell(struct trace_rows *rows, const struct trace_row *row, size_t at,
                     enum trace_column column, int64_t *value, struct ifl_error *error)
{
    const struct trace_column_spec *spec = &trace_columns[column];
    if (trace_kind_is_named(spec->kind))
        return number_name(rows, column, trace_row_text(row, at), value, error);
    if (spec->kind == TRACE_IS_SECONDS)
        return trace_row_stamp(row, at, value, error);
    return trace_row_whole(row, at, spec->least, most(spec), value, error);
}

static int take_cell(struct trace_rows *rows, const struct trace_row *row, size_t at,
                     enum trace_column column, struct ifl_error *error)
{
    const struct trace_column_spec *spec = &trace_columns[column];
    int64_t value = spec->absent;
    char expected[64];
    int rc = 0;
    if (trace_row_filled(row, at) || spec->kind == TRACE_IS_CLIENT)
        rc = read_cell(rows, row, at, column, &value, error);
    say(rows, column, value);
    if (IFL_RARE(rc == 0 && is_passed(rows, column, value, expected)))
        return trace_row_fail(row, at, expected, error);
    return rc;
}

int trace_attributes_take_row(struct trace_rows *rows, const struct trace_row *row, size_t first,
                              struct ifl_error *error)
{
    ifl_assert(rows->trace->n > 0);
    int rc = 0;
    uint64_t left = rows->attributes >> TRACE_FIRST_ATTRIBUTE;
    for (int c = TRACE_FIRST_ATTRIBUTE; rc == 0 && left; c++, first++, left >>= 1)
        if (left & 1)
            rc = take_cell(rows, row, first, (enum trace_column)c, error);
    return rc;
}

/* ---- keys ---- */

enum { N_KEYS_END = TRACE_FIRST_ATTRIBUTE + TRACE_N_OF_ANY_FORMAT };

int trace_attributes_want_record(struct trace_rows *rows, const struct trace_record *record,
                                 struct ifl_error *error)
{
    int rc = 0;
    for (int c = TRACE_FIRST_ATTRIBUTE; rc == 0 && c < N_KEYS_END; c++)
        if (json_object_get(record->value, trace_columns[c].name))
            rc = want(rows, (enum trace_column)c, error);
    return rc;
}

/* A client or a group has a name or a number; the value NULL stands for the empty name. */
static int take_name(struct trace_rows *rows, const struct trace_record *record,
                     enum trace_column column, const json_t *value, int64_t *taken,
                     struct ifl_error *error)
{
    const char *key = trace_columns[column].name, *name = "";
    char number[24];
    if (json_is_integer(value)) {
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        name = number;
    } else if (json_is_string(value)) {
        name = trace_record_name(record, key, error);
    } else if (value) {
        return trace_record_fail(record, key, "a text on one line or a whole number", error);
    }
    return name ? number_name(rows, column, name, taken, error) : error->code;
}

static int take_key(struct trace_rows *rows, const struct trace_record *record,
                    enum trace_column column, struct ifl_error *error)
{
    const struct trace_column_spec *spec = &trace_columns[column];
    const json_t *value = json_object_get(record->value, spec->name);
    int64_t taken = spec->absent;
    char expected[64];
    int rc = 0;
    if (json_is_null(value))
        value = NULL;
    if (value && !(rows->attributes >> column & 1))
        return trace_record_fail(record, spec->name, "it in the first record, too, or in none",
                                 error);
    if (!(rows->attributes >> column & 1))
        return 0;
    if (trace_kind_is_named(spec->kind))
        rc = take_name(rows, record, column, value, &taken, error);
    else if (value && spec->kind == TRACE_IS_SECONDS)
        rc = trace_record_stamp(record, spec->name, IFL_NS_PER_S, &taken, error);
    else if (value)
        rc = trace_record_whole(record, spec->name, spec->least, most(spec), &taken, error);
    say(rows, column, taken);
    if (rc == 0 && is_passed(rows, column, taken, expected))
        return trace_record_fail(record, spec->name, expected, error);
    return rc;
}

int trace_attributes_take_record(struct trace_rows *rows, const struct trace_record *record,
                                 struct ifl_error *error)
{
    ifl_assert(rows->trace->n > 0);
    int rc = 0;
    for (int c = TRACE_FIRST_ATTRIBUTE; rc == 0 && c < N_KEYS_END; c++)
        rc = take_key(rows, record, (enum trace_column)c, error);
    return rc;
}
