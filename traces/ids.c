/* Request ids of a file. Each must be there once, since reports and comparisons identify a request
 * by its id alone. */
#include "traces.h"

struct trace_id {
    uint64_t id;
    int line;
};

int trace_ids_add(struct trace_ids *ids, uint64_t id, int line, struct ifl_error *error)
{
    if (trace_reserve(&ids->of, &ids->cap, ids->n + 1, sizeof *ids->of, error) < 0)
        return error->code;
    ids->unordered |= ids->n > 0 && id <= ids->of[ids->n - 1].id;
    ids->of[ids->n++] = (struct trace_id){id, line};
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct trace_id *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

int trace_ids_check(struct trace_ids *ids, const char *path, struct ifl_error *error)
{
    const struct trace_id *again = NULL; /* the first line that repeats an id of a line before it */
    if (!ids->unordered)
        return 0;
    qsort(ids->of, ids->n, sizeof *ids->of, compare);
    for (size_t i = 1; i < ids->n; i++)
        if (ids->of[i].id == ids->of[i - 1].id && (!again || ids->of[i].line < again->line))
            again = &ids->of[i];
    if (!again)
        return 0;
    return ifl_fail_at(error, path, again->line, 0,
                       "request_id is %llu as on line %d, expected each id once",
                       (unsigned long long)again->id, again[-1].line);
}

void trace_ids_free(struct trace_ids *ids)
{
    free(ids->of);
    *ids = (struct trace_ids){0};
}
