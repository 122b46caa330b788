/* inflight's own CSV: arrival_s, prompt_tokens, output_tokens and optional columns in any order.
 * An empty cell of an optional column means "none". */
#include "traces.h"

#include <ctype.h>
#include <string.h>

#include "inflight/random.h"

enum { TOKEN_IDS = TRACE_N_CSV_COLUMNS, N_COLUMNS }; /* is read, and not written */

const struct trace_csv_column trace_inflight_columns[N_COLUMNS] = {
    [TRACE_ARRIVAL] = {"arrival_s", TRACE_OPTIONAL},
    [TRACE_PROMPT] = {"prompt_tokens", TRACE_NEEDED},
    [TRACE_OUTPUT] = {"output_tokens", TRACE_NEEDED},
    [TRACE_REQUEST_ID] = {"request_id", TRACE_OPTIONAL},
    [TRACE_CLIENT] = {"client", TRACE_OPTIONAL},
    [TRACE_PRIORITY] = {"priority", TRACE_OPTIONAL},
    [TRACE_TTFT_SLO] = {"ttft_slo_s", TRACE_OPTIONAL},
    [TRACE_TPOT_SLO] = {"tpot_slo_s", TRACE_OPTIONAL},
    [TRACE_MAX_TOKENS] = {"max_tokens", TRACE_OPTIONAL},
    [TRACE_SAMPLES] = {"samples", TRACE_OPTIONAL},
    [TRACE_SESSION] = {"session", TRACE_OPTIONAL},
    [TRACE_THINK] = {"think_s", TRACE_OPTIONAL},
    [TRACE_PREFIX_GROUP] = {"prefix_group", TRACE_OPTIONAL},
    [TRACE_PREFIX_TOKENS] = {"prefix_tokens", TRACE_OPTIONAL},
    [TOKEN_IDS] = {"token_ids", TRACE_OPTIONAL},
};

_Static_assert(N_COLUMNS <= TRACE_CSV_MAX_COLUMNS, "a row has a cell for every column");

struct inflight {
    struct trace_rows *rows;
    struct trace_names sessions, groups;
    bool optional;  /* there are columns beside the first three */
    bool token_ids; /* one of them is token_ids */
};

/* An error for a column that means nothing without the column `needed`. */
static int check_company(const struct trace_row *row, size_t column, size_t needed,
                         const struct inflight *inflight, struct ifl_error *error)
{
    if (!trace_row_bound(row, column) || trace_row_bound(row, needed))
        return 0;
    return ifl_fail_at(error, inflight->rows->path, 1, 0, "column %s is there without column %s",
                       trace_inflight_columns[column].name, trace_inflight_columns[needed].name);
}

static int take_header(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct inflight *inflight = self;
    int rc = check_company(row, TRACE_THINK, TRACE_SESSION, inflight, error);
    if (rc == 0)
        rc = check_company(row, TRACE_PREFIX_TOKENS, TRACE_PREFIX_GROUP, inflight, error);
    if (rc == 0)
        rc = check_company(row, TRACE_PREFIX_GROUP, TRACE_PREFIX_TOKENS, inflight, error);
    inflight->rows->trace->has_stamps = trace_row_bound(row, TRACE_ARRIVAL);
    for (int c = TRACE_REQUEST_ID; rc == 0 && c < TRACE_N_CSV_COLUMNS; c++) {
        if (!trace_row_bound(row, (size_t)c))
            continue;
        inflight->optional = true;
        rc = trace_rows_want(inflight->rows, (enum trace_column)c, error);
    }
    inflight->token_ids = trace_row_bound(row, TOKEN_IDS);
    inflight->optional |= inflight->token_ids;
    inflight->rows->trace->hash_block_tokens = inflight->token_ids;
    return rc;
}

/* ---- cells of optional columns ---- */

static int take_request_id(struct trace_rows *rows, const struct trace_row *row, uint64_t *cell,
                           struct ifl_error *error)
{
    int64_t value = (int64_t)*cell; /* so far the record's number */
    const int rc = trace_row_filled(row, TRACE_REQUEST_ID)
                       ? trace_row_whole(row, TRACE_REQUEST_ID, 0, INT64_MAX, &value, error)
                       : 0;
    *cell = (uint64_t)value;
    return rc == 0 ? trace_ids_add(&rows->ids, *cell, trace_row_line(row), error) : rc;
}

static int take_optional(struct inflight *inflight, const struct trace_row *row, size_t column,
                         struct ifl_error *error)
{
    const struct ifl_trace *trace = inflight->rows->trace;
    const size_t i = trace->n - 1;
    switch (column) {
    case TRACE_REQUEST_ID:
        return take_request_id(inflight->rows, row, &trace->request_id[i], error);
    case TRACE_SAMPLES:
        return trace_row_whole_or(row, column, 1, 1, &trace->samples[i], error);
    case TRACE_SESSION:
        return trace_row_group(row, column, &inflight->sessions, &trace->session[i], error);
    case TRACE_THINK:
        return trace_row_seconds_or(row, column, -1, &trace->think_ns[i], error);
    case TRACE_PREFIX_GROUP:
        return trace_row_group(row, column, &inflight->groups, &trace->prefix_group[i], error);
    case TRACE_PREFIX_TOKENS:
        return trace_row_whole_or(row, column, 0, 0, &trace->prefix_tokens[i], error);
    default:
        return trace_attribute_take_cell(inflight->rows, row, column, (enum trace_column)column,
                                         error);
    }
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
    const char *at = trace_row_filled(row, TOKEN_IDS) ? trace_row_text(row, TOKEN_IDS) : "";
    const int64_t n = count_tokens(at);
    if (n < 0)
        return trace_row_fail(row, TOKEN_IDS, "whole numbers below 2^31, a blank between two",
                              error);
    if (n > 0 && n != trace->n_prompt[trace->n - 1])
        return trace_row_fail(row, TOKEN_IDS, "as many numbers as prompt_tokens", error);
    if (n > 0 && trace->prefix_tokens && trace->prefix_tokens[trace->n - 1] > 0)
        return trace_row_fail(row, TOKEN_IDS, "none in a row with prefix_tokens", error);
    uint64_t *id = trace_rows_hash_ids(inflight->rows, (size_t)n, error);
    if (!id)
        return error->code;
    for (uint64_t token, before = 0; next_token(&at, &token); id++)
        *id = before = ifl_mix(before ^ ifl_mix(token));
    return 0;
}

static int check_row(const struct ifl_trace *trace, const struct trace_row *row,
                     struct ifl_error *error)
{
    const size_t i = trace->n - 1;
    if (trace->think_ns && trace->think_ns[i] >= 0 && trace->session[i] == 0)
        return trace_row_fail(row, TRACE_THINK, "none in a row without session", error);
    if (!trace->prefix_tokens || trace->prefix_tokens[i] == 0)
        return 0;
    if (trace->prefix_group[i] == 0)
        return trace_row_fail(row, TRACE_PREFIX_TOKENS, "none in a row without prefix_group",
                              error);
    if (trace->prefix_tokens[i] > trace->n_prompt[i])
        return trace_row_fail(row, TRACE_PREFIX_TOKENS, "at most prompt_tokens", error);
    return 0;
}

/* A session's first row needs a stamp: there is no turn before it to count a think time from. */
static int check_first_turn(const struct inflight *inflight, const struct trace_row *row,
                            size_t n_sessions, struct ifl_error *error)
{
    const bool first = inflight->sessions.n > n_sessions,
               stamped = !inflight->rows->trace->has_stamps || trace_row_filled(row, TRACE_ARRIVAL);
    return first && !stamped
               ? trace_row_fail(row, TRACE_ARRIVAL, "a stamp in a session's first row", error)
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
    if (trace->n == 0 || trace_row_filled(row, TRACE_ARRIVAL) || !trace->think_ns ||
        !trace_row_filled(row, TRACE_THINK))
        return trace_row_stamp(row, TRACE_ARRIVAL, arrival_ns, error);
    *arrival_ns = trace->arrival_ns[trace->n - 1];
    return 0;
}

static int take_record(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct inflight *inflight = self;
    int64_t arrival_ns;
    int32_t prompt = 0, output = 0;
    const size_t n_sessions = inflight->sessions.n;
    int rc = take_stamp(inflight->rows->trace, row, &arrival_ns, error);
    if (rc == 0)
        rc = trace_row_tokens(row, TRACE_PROMPT, 1, &prompt, error);
    if (rc == 0)
        rc = trace_row_tokens(row, TRACE_OUTPUT, 1, &output, error);
    if (rc == 0)
        rc = trace_rows_add(inflight->rows, arrival_ns, prompt, output, error);
    if (rc < 0 || !inflight->optional)
        return rc;
    rc = 0;
    for (size_t c = TRACE_REQUEST_ID; rc == 0 && c < TRACE_N_CSV_COLUMNS; c++)
        if (trace_row_bound(row, c))
            rc = take_optional(inflight, row, c, error);
    if (rc == 0 && inflight->token_ids)
        rc = take_token_ids(inflight, row, error);
    if (rc == 0)
        rc = check_first_turn(inflight, row, n_sessions, error);
    return rc == 0 ? check_row(inflight->rows->trace, row, error) : rc;
}

int trace_read_inflight(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    struct inflight inflight = {.rows = rows};
    const struct trace_csv_format format = {
        .columns = trace_inflight_columns, .n_columns = N_COLUMNS, .closed = true};
    const struct trace_csv_reader reader = {
        .header = take_header, .record = take_record, .self = &inflight};
    const int rc = trace_csv_read(input, &format, &reader, error);
    trace_names_free(&inflight.sessions);
    trace_names_free(&inflight.groups);
    return rc;
}
