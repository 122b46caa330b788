/* inflight's own CSV: arrival_s, prompt_tokens, output_tokens and optional columns in any order.
 * An empty cell of an optional column means "none". */
#include "traces.h"

#include <ctype.h>
#include <string.h>

#include "inflight/random.h"

enum { ARRIVAL, PROMPT, OUTPUT, ID, TOKEN_IDS, N_COLUMNS };

static const struct trace_csv_column columns[N_COLUMNS] = {
    [ARRIVAL] = {"arrival_s", TRACE_OPTIONAL},   [PROMPT] = {"prompt_tokens", TRACE_NEEDED},
    [OUTPUT] = {"output_tokens", TRACE_NEEDED},  [ID] = {"request_id", TRACE_OPTIONAL},
    [TOKEN_IDS] = {"token_ids", TRACE_OPTIONAL}, /* is read, and not written */
};

/* The place of an attribute, behind these columns. */
static size_t at(enum trace_column attribute)
{
    return N_COLUMNS + (size_t)attribute - TRACE_FIRST_ATTRIBUTE;
}

struct inflight {
    struct trace_rows *rows;
    bool token_ids;
    bool more; /* token_ids or request_id */
};

/* An error for a column that means nothing without the column `needed`. */
static int check_company(const struct trace_row *row, enum trace_column column,
                         enum trace_column needed, const struct inflight *inflight,
                         struct ifl_error *error)
{
    if (!trace_row_bound(row, at(column)) || trace_row_bound(row, at(needed)))
        return 0;
    return ifl_fail_at(error, inflight->rows->path, 1, 0, "column %s is there without column %s",
                       trace_columns[column].name, trace_columns[needed].name);
}

static int take_header(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct inflight *inflight = self;
    int rc = check_company(row, TRACE_THINK, TRACE_SESSION, inflight, error);
    if (rc == 0)
        rc = check_company(row, TRACE_PREFIX_TOKENS, TRACE_PREFIX_GROUP, inflight, error);
    if (rc == 0)
        rc = check_company(row, TRACE_PREFIX_GROUP, TRACE_PREFIX_TOKENS, inflight, error);
    if (rc == 0 && trace_row_bound(row, ID))
        rc = trace_rows_want(inflight->rows, TRACE_REQUEST_ID, error);
    inflight->rows->trace->has_stamps = trace_row_bound(row, ARRIVAL);
    inflight->token_ids = trace_row_bound(row, TOKEN_IDS);
    inflight->more = inflight->token_ids || trace_row_bound(row, ID);
    inflight->rows->trace->hash_block_tokens = inflight->token_ids;
    return rc;
}

/* ---- cells ---- */

static int take_request_id(struct trace_rows *rows, const struct trace_row *row,
                           struct ifl_error *error)
{
    uint64_t *cell = &rows->trace->request_id[rows->trace->n - 1];
    int64_t value = (int64_t)*cell; /* so far the record's number */
    const int rc =
        trace_row_filled(row, ID) ? trace_row_whole(row, ID, 0, INT64_MAX, &value, error) : 0;
    *cell = (uint64_t)value;
    return rc == 0 ? trace_ids_add(&rows->ids, *cell, trace_row_line(row), error) : rc;
}

/* Reads the next of several numbers with one blank between two; false if there is none. */
static bool next_token(const char **at, uint64_t *token)
{
    const size_t n = strcspn(*at, " ");
    int64_t value;
    if (!isdigit((unsigned char)**at) || trace_whole(*at, n, &value) != TRACE_NUMBER ||
        value > INT32_MAX)
        return false;
    *token = (uint64_t)value;
    *at += n;
    *at += **at == ' ' && (*at)[1] != '\0';
    return true;
}

/* Counts the numbers; -1 if the text has anything else. */
static int64_t count_tokens(const char *text)
{
    uint64_t token;
    int64_t n = 0;
    while (*text && next_token(&text, &token))
        n++;
    return *text ? -1 : n;
}

/* The hash id of a token covers the token and all tokens before it, as block ids of other traces
 * do.
 */
static int take_token_ids(struct inflight *inflight, const struct trace_row *row,
                          struct ifl_error *error)
{
    const struct ifl_trace *trace = inflight->rows->trace;
    const char *text = trace_row_filled(row, TOKEN_IDS) ? trace_row_text(row, TOKEN_IDS) : "";
    const int64_t n = count_tokens(text);
    if (n < 0)
        return trace_row_fail(row, TOKEN_IDS, "whole numbers below 2^31, a blank between two",
                              error);
    const int64_t n_prompt = trace->n_prompt[trace->n - 1];
    if (n > 0 && n != n_prompt && n != n_prompt + trace->n_output[trace->n - 1])
        return trace_row_fail(row, TOKEN_IDS,
                              "as many numbers as prompt_tokens, or those of the answer as well",
                              error);
    if (n > 0 && trace->prefix_tokens && trace->prefix_tokens[trace->n - 1] > 0)
        return trace_row_fail(row, TOKEN_IDS, "none in a row with prefix_tokens", error);
    uint64_t *id = trace_rows_hash_ids(inflight->rows, (size_t)n, error);
    if (!id)
        return error->code;
    for (uint64_t token, before = 0; next_token(&text, &token); id++)
        *id = before = ifl_mix(before ^ ifl_mix(token));
    return 0;
}

static int check_row(const struct ifl_trace *trace, const struct trace_row *row,
                     struct ifl_error *error)
{
    const size_t i = trace->n - 1;
    if (trace->think_ns && trace->think_ns[i] >= 0 && trace->session[i] == 0)
        return trace_row_fail(row, at(TRACE_THINK), "none in a row without session", error);
    if (!trace->prefix_tokens || trace->prefix_tokens[i] == 0)
        return 0;
    if (trace->prefix_group[i] == 0)
        return trace_row_fail(row, at(TRACE_PREFIX_TOKENS), "none in a row without prefix_group",
                              error);
    if (trace->prefix_tokens[i] > trace->n_prompt[i])
        return trace_row_fail(row, at(TRACE_PREFIX_TOKENS), "at most prompt_tokens", error);
    return 0;
}

/* Whether the row is there that it repeats is known at the end of the file. */
static int note_retry(struct trace_rows *rows, const struct trace_row *row, struct ifl_error *error)
{
    const struct ifl_trace *trace = rows->trace;
    if (!trace->retry_of || trace->retry_of[trace->n - 1] < 0)
        return 0;
    return trace_retries_add(&rows->retries, trace->n - 1, trace_row_line(row),
                             trace_row_column(row, at(TRACE_RETRY_OF)), error);
}

/* A session's first row needs a stamp: there is no turn before it to count a think time from. */
static int check_first_turn(const struct inflight *inflight, const struct trace_row *row,
                            size_t n_sessions, struct ifl_error *error)
{
    const bool first = inflight->rows->names[TRACE_SESSION].n > n_sessions,
               stamped = !inflight->rows->trace->has_stamps || trace_row_filled(row, ARRIVAL);
    return first && !stamped
               ? trace_row_fail(row, ARRIVAL, "a stamp in a session's first row", error)
               : 0;
}

/* The stamp of a row. A turn with a think time and no stamp gets that of the row before it, which
 * keeps its place when rows are sorted; its think time decides when it arrives. */
static int take_stamp(const struct ifl_trace *trace, const struct trace_row *row,
                      int64_t *arrival_ns, struct ifl_error *error)
{
    *arrival_ns = 0;
    if (!trace->has_stamps)
        return 0;
    if (trace->n == 0 || trace_row_filled(row, ARRIVAL) || !trace->think_ns ||
        !trace_row_filled(row, at(TRACE_THINK)))
        return trace_row_stamp(row, ARRIVAL, arrival_ns, error);
    *arrival_ns = trace->arrival_ns[trace->n - 1];
    return 0;
}

IFL_APART static int take_optional(struct inflight *inflight, const struct trace_row *row,
                                   size_t n_sessions, struct ifl_error *error)
{
    int rc = trace_row_bound(row, ID) ? take_request_id(inflight->rows, row, error) : 0;
    if (rc == 0)
        rc = trace_attributes_take_row(inflight->rows, row, N_COLUMNS, error);
    if (rc == 0 && inflight->token_ids)
        rc = take_token_ids(inflight, row, error);
    if (rc == 0)
        rc = note_retry(inflight->rows, row, error);
    if (rc == 0)
        rc = check_first_turn(inflight, row, n_sessions, error);
    return rc == 0 ? check_row(inflight->rows->trace, row, error) : rc;
}

static int take_record(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct inflight *inflight = self;
    int64_t arrival_ns;
    int32_t prompt = 0, output = 0;
    const size_t n_sessions = inflight->rows->names[TRACE_SESSION].n;
    int rc = take_stamp(inflight->rows->trace, row, &arrival_ns, error);
    if (rc == 0)
        rc = trace_row_tokens(row, PROMPT, 1, &prompt, error);
    if (rc == 0)
        rc = trace_row_tokens(row, OUTPUT, 1, &output, error);
    if (rc == 0)
        rc = trace_rows_add(inflight->rows, arrival_ns, prompt, output, error);
    if (rc < 0 || !(inflight->more || inflight->rows->attributes))
        return rc;
    return take_optional(inflight, row, n_sessions, error);
}

int trace_read_inflight(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    struct inflight inflight = {.rows = rows};
    const struct trace_csv_format format = {
        .columns = columns, .n_columns = N_COLUMNS, .own = true};
    const struct trace_csv_reader reader = {
        .header = take_header, .record = take_record, .self = &inflight, .rows = rows};
    return trace_csv_read(input, &format, &reader, error);
}
