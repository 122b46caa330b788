/* The columns of a trace, treated alike: growing, moving rows, freeing. */
#include "traces.h"

#include <string.h>

static const struct {
    size_t offset, size_bytes;
} columns[TRACE_N_COLUMNS] = {
#define COLUMN(field)                                                                              \
    {                                                                                              \
        offsetof(struct ifl_trace, field), sizeof *((struct ifl_trace *)0)->field                  \
    }
    [TRACE_ARRIVAL] = COLUMN(arrival_ns),
    [TRACE_PROMPT] = COLUMN(n_prompt),
    [TRACE_OUTPUT] = COLUMN(n_output),
    [TRACE_REQUEST_ID] = COLUMN(request_id),
    [TRACE_CLIENT] = COLUMN(client),
    [TRACE_PRIORITY] = COLUMN(priority),
    [TRACE_TTFT_SLO] = COLUMN(ttft_slo_ns),
    [TRACE_TPOT_SLO] = COLUMN(tpot_slo_ns),
    [TRACE_MAX_TOKENS] = COLUMN(max_tokens),
    [TRACE_SAMPLES] = COLUMN(samples),
    [TRACE_SESSION] = COLUMN(session),
    [TRACE_THINK] = COLUMN(think_ns),
    [TRACE_PREFIX_GROUP] = COLUMN(prefix_group),
    [TRACE_PREFIX_TOKENS] = COLUMN(prefix_tokens),
    [TRACE_OUTCOME] = COLUMN(outcome),
#undef COLUMN
};

/* The pointers differ in type; memcpy is the one way to treat them alike. */
static void *column_get(const struct ifl_trace *trace, enum trace_column column)
{
    void *data;
    memcpy(&data, (const char *)trace + columns[column].offset, sizeof data);
    return data;
}

static void column_set(struct ifl_trace *trace, enum trace_column column, void *data)
{
    memcpy((char *)trace + columns[column].offset, &data, sizeof data);
}

bool trace_column_there(const struct ifl_trace *trace, enum trace_column column)
{
    return column_get(trace, column);
}

int trace_column_resize(struct ifl_trace *trace, enum trace_column column, size_t cap,
                        struct ifl_error *error)
{
    if (cap > SIZE_MAX / columns[column].size_bytes)
        return ifl_fail_nomem(error);
    void *data = realloc(column_get(trace, column), cap * columns[column].size_bytes);
    if (!data)
        return ifl_fail_nomem(error);
    column_set(trace, column, data);
    return 0;
}

void ifl_trace_free(struct ifl_trace *trace)
{
    for (int c = 0; c < TRACE_N_COLUMNS; c++)
        free(column_get(trace, (enum trace_column)c));
    for (uint32_t i = 0; trace->client_names && i < trace->n_clients; i++)
        free(trace->client_names[i]);
    free(trace->client_names);
    free(trace->hash_at);
    free(trace->hash_id);
    free(trace->gap_at);
    free(trace->gap_ns);
    *trace = (struct ifl_trace){0};
}

int trace_identify(struct ifl_trace *trace, struct ifl_error *error)
{
    if (trace->request_id)
        return 0;
    const int rc = trace_column_resize(trace, TRACE_REQUEST_ID, trace->n ? trace->n : 1, error);
    for (size_t i = 0; rc == 0 && i < trace->n; i++)
        trace->request_id[i] = i;
    return rc;
}

static int gather_column(struct ifl_trace *trace, enum trace_column column, const size_t *order,
                         size_t n, struct ifl_error *error)
{
    const size_t size_bytes = columns[column].size_bytes;
    char *from = column_get(trace, column);
    if (!from)
        return 0;
    char *to = malloc(n * size_bytes);
    if (!to)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * size_bytes, from + order[i] * size_bytes, size_bytes);
    free(from);
    column_set(trace, column, to);
    return 0;
}

/* A list a row: row i has items [at[i], at[i + 1]) of eight bytes each. */
struct lists {
    size_t *at;
    void *items;
};

enum { ITEM_BYTES = 8 };

static int gather_lists(const struct lists *from, struct lists *to, const size_t *order, size_t n,
                        struct ifl_error *error)
{
    size_t n_items = 0;
    for (size_t i = 0; i < n; i++)
        n_items += from->at[order[i] + 1] - from->at[order[i]];
    char *items = malloc((n_items + 1) * ITEM_BYTES);
    *to = (struct lists){malloc((n + 1) * sizeof *to->at), items};
    if (!to->at || !items) {
        free(to->at);
        free(items);
        return ifl_fail_nomem(error);
    }
    to->at[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = from->at[order[i]], end = from->at[order[i] + 1];
        if (end > begin) /* lists that are all empty have no items to point at */
            memcpy(items + to->at[i] * ITEM_BYTES, (const char *)from->items + begin * ITEM_BYTES,
                   (end - begin) * ITEM_BYTES);
        to->at[i + 1] = to->at[i] + (end - begin);
    }
    free(from->at);
    free(from->items);
    return 0;
}

static int gather_hash_ids(struct ifl_trace *trace, const size_t *order, size_t n,
                           struct ifl_error *error)
{
    const struct lists from = {trace->hash_at, trace->hash_id};
    struct lists to;
    if (!from.at)
        return 0;
    const int rc = gather_lists(&from, &to, order, n, error);
    if (rc == 0) {
        trace->hash_at = to.at;
        trace->hash_id = to.items;
    }
    return rc;
}

static int gather_gaps(struct ifl_trace *trace, const size_t *order, size_t n,
                       struct ifl_error *error)
{
    const struct lists from = {trace->gap_at, trace->gap_ns};
    struct lists to;
    if (!from.at)
        return 0;
    const int rc = gather_lists(&from, &to, order, n, error);
    if (rc == 0) {
        trace->gap_at = to.at;
        trace->gap_ns = to.items;
    }
    return rc;
}

int trace_gather(struct ifl_trace *trace, const size_t *order, size_t n, struct ifl_error *error)
{
    int rc = gather_hash_ids(trace, order, n, error);
    if (rc == 0)
        rc = gather_gaps(trace, order, n, error);
    for (int c = 0; rc == 0 && c < TRACE_N_COLUMNS; c++)
        rc = gather_column(trace, (enum trace_column)c, order, n, error);
    trace->n = n;
    return rc;
}

/* ---- sorting ---- */

struct stamp {
    int64_t at_ns;
    size_t row;
};

static int compare(const void *left, const void *right)
{
    const struct stamp *a = left, *b = right;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static size_t count_late(const struct ifl_trace *trace)
{
    size_t n_late = 0;
    int64_t latest_ns = INT64_MIN;
    for (size_t i = 0; i < trace->n; i++) {
        n_late += trace->arrival_ns[i] < latest_ns;
        latest_ns = trace->arrival_ns[i] > latest_ns ? trace->arrival_ns[i] : latest_ns;
    }
    return n_late;
}

static int order_by_stamp(const struct ifl_trace *trace, size_t *order, struct ifl_error *error)
{
    struct stamp *stamps = malloc(trace->n * sizeof *stamps);
    if (!stamps)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < trace->n; i++)
        stamps[i] = (struct stamp){trace->arrival_ns[i], i};
    qsort(stamps, trace->n, sizeof *stamps, compare);
    for (size_t i = 0; i < trace->n; i++)
        order[i] = stamps[i].row;
    free(stamps);
    return 0;
}

int ifl_trace_sort(struct ifl_trace *trace, const struct ifl_notes *notes, struct ifl_error *error)
{
    const size_t n_late = count_late(trace);
    if (n_late == 0)
        return 0;
    size_t *order = malloc(trace->n * sizeof *order);
    int rc = order ? trace_identify(trace, error) : ifl_fail_nomem(error);
    if (rc == 0)
        rc = order_by_stamp(trace, order, error);
    if (rc == 0)
        rc = trace_gather(trace, order, trace->n, error);
    if (rc == 0)
        trace_note(notes, "%zu of %zu stamps were out of order; sorted", n_late, trace->n);
    free(order);
    return rc;
}
