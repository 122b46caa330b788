/* Operations on all columns of a trace: growing, moving rows, freeing. */
#include "traces.h"

#include <string.h>

#define PLACE(member)                                                                              \
    .offset = offsetof(struct ifl_trace, member),                                                  \
    .size_bytes = sizeof *((struct ifl_trace *)0)->member

const struct trace_column_spec trace_columns[TRACE_N_COLUMNS] = {
#define COLUMN(column, of_kind, member, csv_name, at_least, if_absent, doc, empty_doc)             \
    [TRACE_##column] = {.name = csv_name,                                                          \
                        .says = doc,                                                               \
                        .empty = empty_doc,                                                        \
                        .kind = TRACE_IS_##of_kind,                                                \
                        .least = at_least,                                                         \
                        .absent = if_absent,                                                       \
                        PLACE(member)},
    IFL_COLUMNS(COLUMN)
#undef COLUMN
        [TRACE_OUTCOME] = {PLACE(outcome)},
};

const struct ifl_attributes ifl_attributes_absent = {
#define ABSENT(column, kind, member, name, least, absent, ...) .member = absent,
    IFL_ATTRIBUTES(ABSENT)
#undef ABSENT
};

/* ---- cells ---- */

int64_t trace_cell(const struct ifl_trace *trace, enum trace_column column, size_t row)
{
    switch (column) {
#define CELL(column, kind, member, ...)                                                            \
    case TRACE_##column:                                                                           \
        return (int64_t)trace->member[row];
        IFL_COLUMNS(CELL)
#undef CELL
    default:
        return 0;
    }
}

bool ifl_trace_has_attributes(const struct ifl_trace *trace)
{
#define OR_THERE(column, kind, member, ...) || trace->member
    return false IFL_ATTRIBUTES(OR_THERE);
#undef OR_THERE
}

void ifl_trace_attributes_of(const struct ifl_trace *trace, size_t row,
                             struct ifl_attributes *attributes)
{
#define TAKE(column, kind, member, name, least, absent, ...)                                       \
    if (trace->member && trace->member[row] != (absent))                                           \
        attributes->member = trace->member[row];
    IFL_ATTRIBUTES(TAKE)
#undef TAKE
}

/* ---- whole columns ---- */

/* The column pointers have different types; memcpy reads and writes them without a cast. */
static void *column_get(const struct ifl_trace *trace, enum trace_column column)
{
    void *data;
    memcpy(&data, (const char *)trace + trace_columns[column].offset, sizeof data);
    return data;
}

void trace_set_cell(struct ifl_trace *trace, enum trace_column column, size_t row, int64_t value)
{
    void *cells = column_get(trace, column);
    if (trace_columns[column].size_bytes == sizeof(int32_t))
        ((int32_t *)cells)[row] = (int32_t)value;
    else
        ((int64_t *)cells)[row] = value;
}

static void column_set(struct ifl_trace *trace, enum trace_column column, void *data)
{
    memcpy((char *)trace + trace_columns[column].offset, &data, sizeof data);
}

bool trace_column_there(const struct ifl_trace *trace, enum trace_column column)
{
    return column_get(trace, column);
}

int trace_column_resize(struct ifl_trace *trace, enum trace_column column, size_t cap,
                        struct ifl_error *error)
{
    if (cap > SIZE_MAX / trace_columns[column].size_bytes)
        return ifl_fail_nomem(error);
    void *data = realloc(column_get(trace, column), cap * trace_columns[column].size_bytes);
    if (!data)
        return ifl_fail_nomem(error);
    column_set(trace, column, data);
    return 0;
}

static void free_names(char **names, uint32_t n)
{
    for (uint32_t i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
}

void ifl_trace_free(struct ifl_trace *trace)
{
    for (int c = 0; c < TRACE_N_COLUMNS; c++)
        free(column_get(trace, (enum trace_column)c));
    free_names(trace->client_names, trace->n_clients);
    free_names(trace->model_names, trace->n_models);
    free_names(trace->adapter_names, trace->n_adapters);
    free(trace->hash_at);
    free(trace->hash_id);
    free(trace->gap_at);
    free(trace->gap_ns);
    *trace = (struct ifl_trace){0};
}

/* ---- rows of one trace, in another order, as a trace of their own ---- */

/* How many rows from place i on are neighbours in the old order, too: they are copied at once. Most
 * orders leave out rows at an end or none. */
static size_t count_neighbours(const uint64_t *order, size_t n, size_t i)
{
    size_t next = i + 1;
    while (next < n && order[next] == order[next - 1] + 1)
        next++;
    return next - i;
}

static int gather_column(const struct ifl_trace *whole, struct ifl_trace *part,
                         enum trace_column column, const uint64_t *order, struct ifl_error *error)
{
    const size_t size_bytes = trace_columns[column].size_bytes;
    const char *from = column_get(whole, column);
    if (!from)
        return 0;
    const int rc = trace_column_resize(part, column, part->n ? part->n : 1, error);
    char *to = column_get(part, column);
    for (size_t i = 0, n; rc == 0 && i < part->n; i += n) {
        n = count_neighbours(order, part->n, i);
        memcpy(to + i * size_bytes, from + order[i] * size_bytes, n * size_bytes);
    }
    return rc;
}

/* One list per row: row i has the items [at[i], at[i + 1]) of eight bytes each. */
struct lists {
    size_t *at;
    void *items;
};

enum { ITEM_BYTES = 8 };

static int gather_lists(const struct lists *from, struct lists *to, const uint64_t *order, size_t n,
                        struct ifl_error *error)
{
    size_t n_items = 0;
    *to = (struct lists){NULL, NULL};
    if (!from->at)
        return 0;
    for (size_t i = 0; i < n; i++)
        n_items += from->at[order[i] + 1] - from->at[order[i]];
    char *items = malloc((n_items + 1) * ITEM_BYTES);
    *to = (struct lists){malloc((n + 1) * sizeof *to->at), items};
    if (!to->at || !items)
        return ifl_fail_nomem(error);
    to->at[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = from->at[order[i]], end = from->at[order[i] + 1];
        if (end > begin) /* `items` may be NULL if all lists are empty */
            memcpy(items + to->at[i] * ITEM_BYTES, (const char *)from->items + begin * ITEM_BYTES,
                   (end - begin) * ITEM_BYTES);
        to->at[i + 1] = to->at[i] + (end - begin);
    }
    return 0;
}

static int gather_hash_ids(const struct ifl_trace *whole, struct ifl_trace *part,
                           const uint64_t *order, struct ifl_error *error)
{
    const struct lists from = {whole->hash_at, whole->hash_id};
    struct lists to;
    const int rc = gather_lists(&from, &to, order, part->n, error);
    part->hash_at = to.at;
    part->hash_id = to.items;
    return rc;
}

static int gather_gaps(const struct ifl_trace *whole, struct ifl_trace *part, const uint64_t *order,
                       struct ifl_error *error)
{
    const struct lists from = {whole->gap_at, whole->gap_ns};
    struct lists to;
    const int rc = gather_lists(&from, &to, order, part->n, error);
    part->gap_at = to.at;
    part->gap_ns = to.items;
    return rc;
}

static int copy_names(char *const *from, uint32_t n, char ***to, struct ifl_error *error)
{
    if (!from)
        return 0;
    *to = calloc((size_t)n + 1, sizeof **to);
    bool copied = *to;
    for (uint32_t i = 0; copied && i < n; i++)
        copied = ((*to)[i] = strdup(from[i]));
    return copied ? 0 : ifl_fail_nomem(error);
}

static int gather(const struct ifl_trace *whole, struct ifl_trace *part, const uint64_t *order,
                  struct ifl_error *error)
{
    int rc = gather_hash_ids(whole, part, order, error);
    if (rc == 0)
        rc = gather_gaps(whole, part, order, error);
    for (int c = 0; rc == 0 && c < TRACE_N_COLUMNS; c++)
        rc = gather_column(whole, part, (enum trace_column)c, order, error);
    if (rc == 0)
        rc = copy_names(whole->client_names, whole->n_clients, &part->client_names, error);
    if (rc == 0)
        rc = copy_names(whole->model_names, whole->n_models, &part->model_names, error);
    return rc == 0
               ? copy_names(whole->adapter_names, whole->n_adapters, &part->adapter_names, error)
               : rc;
}

IFL_FOR_ASSERTS static inline bool are_rows(const uint64_t *order, size_t n, size_t n_rows)
{
    for (size_t i = 0; i < n; i++)
        if (order[i] >= n_rows)
            return false;
    return true;
}

int trace_gather(const struct ifl_trace *whole, uint64_t *order, size_t n, struct ifl_trace *part,
                 struct ifl_error *error)
{
    ifl_assert(are_rows(order, n, whole->n));
    *part = (struct ifl_trace){
        .n = n,
        .has_stamps = whole->has_stamps,
        .lengths_estimated = whole->lengths_estimated,
        .hash_block_tokens = whole->hash_block_tokens,
        .n_clients = whole->n_clients,
        .n_models = whole->n_models,
        .n_adapters = whole->n_adapters,
    };
    const int rc = gather(whole, part, order, error);
    if (part->request_id)
        free(order);
    else
        part->request_id = order;
    if (rc < 0)
        ifl_trace_free(part);
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

/* Counts the rows with a stamp before an earlier row's. *n_news leaves out turns with a think time,
 * which have no stamp of their own, so that the note does not count them. */
static size_t count_late(const struct ifl_trace *trace, size_t *n_news)
{
    size_t n_late = 0;
    int64_t latest_ns = INT64_MIN;
    *n_news = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const bool late = trace->arrival_ns[i] < latest_ns;
        n_late += late;
        *n_news += late && !(trace->think_ns && trace->think_ns[i] >= 0);
        latest_ns = late ? latest_ns : trace->arrival_ns[i];
    }
    return n_late;
}

static int order_by_stamp(const struct ifl_trace *trace, uint64_t *order, struct ifl_error *error)
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
    ifl_assert(trace_has_lengths(trace));
    size_t n_news;
    struct ifl_trace sorted;
    if (count_late(trace, &n_news) == 0)
        return 0;
    uint64_t *order = calloc(trace->n, sizeof *order);
    int rc = order ? order_by_stamp(trace, order, error) : ifl_fail_nomem(error);
    if (rc < 0)
        free(order);
    else
        rc = trace_gather(trace, order, trace->n, &sorted, error);
    if (rc < 0)
        return rc;
    ifl_trace_free(trace);
    *trace = sorted;
    if (n_news > 0)
        trace_note(notes, "%zu of %zu stamps were out of order; sorted", n_news, trace->n);
    return 0;
}
