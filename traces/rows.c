/* Grows a trace while a reader fills it: capacity, skipped records, names of clients. */
#include "traces.h"

#include <limits.h>
#include <string.h>

#include "inflight/minmax.h"

enum { FIRST_ROWS = 256, MOST_CLIENT_NUMBERS = 65536 };

static int grow(struct trace_rows *rows, struct ifl_error *error)
{
    const size_t cap = rows->cap ? 2 * rows->cap : FIRST_ROWS;
    for (int c = 0; c < TRACE_N_COLUMNS; c++) {
        const enum trace_column column = (enum trace_column)c;
        if (!trace_column_there(rows->trace, column) && column > TRACE_OUTPUT)
            continue;
        const int rc = trace_column_resize(rows->trace, column, cap, error);
        if (rc < 0)
            return rc;
    }
    if (rows->trace->hash_at) {
        size_t *at = realloc(rows->trace->hash_at, (cap + 1) * sizeof *at);
        if (!at)
            return ifl_fail_nomem(error);
        rows->trace->hash_at = at;
    }
    if (rows->trace->gap_at) {
        size_t *at = realloc(rows->trace->gap_at, (cap + 1) * sizeof *at);
        if (!at)
            return ifl_fail_nomem(error);
        rows->trace->gap_at = at;
    }
    rows->cap = cap;
    return 0;
}

int trace_rows_begin(struct trace_rows *rows, struct ifl_error *error)
{
    *rows->trace = (struct ifl_trace){.n_clients = 1};
    rows->skipped = "records have no prompt or no output tokens";
    return grow(rows, error);
}

int trace_rows_want(struct trace_rows *rows, enum trace_column column, struct ifl_error *error)
{
    ifl_assert(rows->trace->n == 0);
    return trace_column_resize(rows->trace, column, rows->cap, error);
}

/* Counts a skipped record. From the first one on, rows need a column of request ids, since a row's
 * number differs from its record's. */
static int skip(struct trace_rows *rows, struct ifl_error *error)
{
    struct ifl_trace *trace = rows->trace;
    rows->n_skipped++;
    if (trace->request_id)
        return 0;
    const int rc = trace_column_resize(trace, TRACE_REQUEST_ID, rows->cap, error);
    for (size_t i = 0; rc == 0 && i < trace->n; i++)
        trace->request_id[i] = i;
    return rc;
}

IFL_HOT int trace_rows_add(struct trace_rows *rows, int64_t arrival_ns, int32_t n_prompt,
                           int32_t n_output, struct ifl_error *error)
{
    struct ifl_trace *trace = rows->trace;
    const size_t record = rows->n_records++;
    if (IFL_RARE(n_prompt == 0 || n_output == 0))
        return skip(rows, error);
    const int rc = trace->n == rows->cap ? grow(rows, error) : 0;
    if (rc < 0)
        return rc;
    const size_t row = trace->n++;
    trace->arrival_ns[row] = arrival_ns;
    trace->n_prompt[row] = n_prompt;
    trace->n_output[row] = n_output;
    if (trace->request_id)
        trace->request_id[row] = record;
    if (trace->gap_at)
        trace->gap_at[row + 1] = rows->n_gaps;
    return 1;
}

static bool is_empty(const struct ifl_trace *trace, size_t row)
{
    return trace->n_prompt[row] == 0 || trace->n_output[row] == 0;
}

int trace_rows_leave_empty(struct trace_rows *rows, struct ifl_error *error)
{
    struct ifl_trace *trace = rows->trace, part;
    size_t n = 0;
    for (size_t i = 0; i < trace->n; i++)
        n += !is_empty(trace, i);
    if (n == trace->n)
        return 0;
    uint64_t *order = calloc(n + 1, sizeof *order);
    if (!order)
        return ifl_fail_nomem(error);
    for (size_t i = 0, at = 0; i < trace->n; i++)
        if (!is_empty(trace, i))
            order[at++] = i;
    rows->n_skipped += trace->n - n;
    const int rc = trace_gather(trace, order, n, &part, error);
    if (rc < 0)
        return rc;
    ifl_trace_free(trace);
    *trace = part;
    rows->cap = n;
    return 0;
}

/* ---- hash ids ---- */

static int begin_hash_ids(struct trace_rows *rows, struct ifl_error *error)
{
    rows->trace->hash_at = calloc(rows->cap + 1, sizeof *rows->trace->hash_at);
    return rows->trace->hash_at ? 0 : ifl_fail_nomem(error);
}

static int reserve_hash_ids(struct trace_rows *rows, size_t n_more, struct ifl_error *error)
{
    /* one more, so that a list without ids has an array, too */
    return trace_reserve(&rows->trace->hash_id, &rows->cap_hash_ids, rows->n_hash_ids + n_more + 1,
                         sizeof *rows->trace->hash_id, error);
}

uint64_t *trace_rows_hash_ids(struct trace_rows *rows, size_t n, struct ifl_error *error)
{
    ifl_assert(rows->trace->n > 0);
    struct ifl_trace *trace = rows->trace;
    int rc = trace->hash_at ? 0 : begin_hash_ids(rows, error);
    if (rc == 0)
        rc = reserve_hash_ids(rows, n, error);
    if (rc < 0)
        return NULL;
    uint64_t *ids = trace->hash_id + rows->n_hash_ids;
    trace->hash_at[trace->n - 1] = rows->n_hash_ids;
    rows->n_hash_ids += n;
    trace->hash_at[trace->n] = rows->n_hash_ids;
    return ids;
}

/* ---- the end ---- */

void trace_rows_rebase(struct trace_rows *rows)
{
    struct ifl_trace *trace = rows->trace;
    int64_t first_ns = INT64_MAX;
    for (size_t i = 0; i < trace->n; i++)
        first_ns = ifl_min(first_ns, trace->arrival_ns[i]);
    for (size_t i = 0; i < trace->n; i++)
        trace->arrival_ns[i] -= first_ns;
}

/* Clients with small numbers for names keep these numbers; an empty cell is client 0. */
static bool client_number(const char *name, uint32_t *number)
{
    int64_t value = 0;
    if (name[0] != '\0' && trace_whole(name, strlen(name), &value) != TRACE_NUMBER)
        return false;
    *number = (uint32_t)value;
    return value >= 0 && value < MOST_CLIENT_NUMBERS;
}

static bool clients_are_numbers(const struct trace_names *clients)
{
    uint32_t number;
    size_t i = 0;
    while (i < clients->n && client_number(clients->name[i], &number))
        i++;
    return i == clients->n;
}

static void use_client_numbers(struct trace_rows *rows)
{
    struct ifl_trace *trace = rows->trace;
    for (size_t i = 0; i < trace->n; i++) {
        uint32_t number = 0;
        client_number(rows->names[TRACE_CLIENT].name[trace->client[i]], &number);
        trace->client[i] = number;
        trace->n_clients = number >= trace->n_clients ? number + 1 : trace->n_clients;
    }
}

static void settle_clients(struct trace_rows *rows)
{
    if (!rows->trace->client)
        return;
    if (clients_are_numbers(&rows->names[TRACE_CLIENT])) {
        use_client_numbers(rows);
        return;
    }
    rows->trace->n_clients = (uint32_t)rows->names[TRACE_CLIENT].n;
    rows->trace->client_names = rows->names[TRACE_CLIENT].name;
    rows->names[TRACE_CLIENT].name = NULL;
    rows->names[TRACE_CLIENT].n = 0;
}

static void keep_names(struct trace_names *names, char ***name, uint32_t *n)
{
    *n = (uint32_t)names->n;
    *name = names->name;
    names->name = NULL;
    names->n = 0;
}

static int trim_hash_ids(struct trace_rows *rows, struct ifl_error *error)
{
    struct ifl_trace *trace = rows->trace;
    if (rows->n_hash_ids == 0) {
        free(trace->hash_at);
        free(trace->hash_id);
        trace->hash_at = NULL;
        trace->hash_id = NULL;
        return 0;
    }
    size_t *at = realloc(trace->hash_at, (trace->n + 1) * sizeof *at);
    trace->hash_at = at ? at : trace->hash_at;
    uint64_t *id = realloc(trace->hash_id, rows->n_hash_ids * sizeof *id);
    trace->hash_id = id ? id : trace->hash_id;
    return at && id ? 0 : ifl_fail_nomem(error);
}

static int trim(struct trace_rows *rows, struct ifl_error *error)
{
    for (int c = 0; c < TRACE_N_COLUMNS; c++) {
        const enum trace_column column = (enum trace_column)c;
        if (!trace_column_there(rows->trace, column))
            continue;
        const int rc = trace_column_resize(rows->trace, column, rows->trace->n, error);
        if (rc < 0)
            return rc;
    }
    return trim_hash_ids(rows, error);
}

int trace_rows_end(struct trace_rows *rows, struct ifl_error *error)
{
    if (trace_ids_check(&rows->ids, rows->path, error) < 0 ||
        trace_retries_check(&rows->retries, rows->trace, rows->path, error) < 0)
        return error->code;
    if (rows->trace->n == 0 && rows->n_skipped == 0)
        return ifl_fail_at(error, rows->path, 0, 0, "no request, expected at least one");
    if (rows->trace->n == 0)
        return ifl_fail_at(error, rows->path, 0, 0,
                           "no request is left: %zu of %zu %s, expected at least one usable record",
                           rows->n_skipped, rows->n_records, rows->skipped);
    rows->trace->n_skipped = rows->n_skipped;
    if (rows->n_skipped > 0)
        trace_note(rows->notes, "%s: %zu of %zu %s; skipped", rows->path, rows->n_skipped,
                   rows->n_records, rows->skipped);
    settle_clients(rows);
    struct ifl_trace *trace = rows->trace;
    keep_names(&rows->names[TRACE_MODEL], &trace->model_names, &trace->n_models);
    keep_names(&rows->names[TRACE_ADAPTER], &trace->adapter_names, &trace->n_adapters);
    return trim(rows, error);
}
