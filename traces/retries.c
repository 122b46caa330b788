/* What retry_of may say: the id of another row, which arrives no later and has a prompt as long. */
#include "traces.h"

#include "inflight/assert.h"

struct trace_retry {
    size_t row;
    int line, column;
};

int trace_retries_add(struct trace_retries *retries, size_t row, int line, int column,
                      struct ifl_error *error)
{
    if (trace_reserve(&retries->of, &retries->cap, retries->n + 1, sizeof *retries->of, error) < 0)
        return error->code;
    retries->of[retries->n++] = (struct trace_retry){row, line, column};
    return 0;
}

void trace_retries_free(struct trace_retries *retries)
{
    free(retries->of);
    *retries = (struct trace_retries){0};
}

/* ---- rows by their ids ---- */

struct known {
    uint64_t id;
    size_t row;
};

static int by_id(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static struct known *sort_ids(const struct ifl_trace *trace)
{
    struct known *known = malloc((trace->n + 1) * sizeof *known);
    for (size_t i = 0; known && i < trace->n; i++)
        known[i] = (struct known){ifl_trace_id(trace, i), i};
    if (known)
        qsort(known, trace->n, sizeof *known, by_id);
    return known;
}

static size_t row_of(const struct ifl_trace *trace, const struct known *known, int64_t id)
{
    const struct known wanted = {(uint64_t)id, 0};
    const struct known *found =
        id < 0 ? NULL : bsearch(&wanted, known, trace->n, sizeof *known, by_id);
    return found ? found->row : trace->n;
}

int ifl_trace_repeated(const struct ifl_trace *trace, size_t **before, struct ifl_error *error)
{
    ifl_assert(trace->retry_of);
    struct known *known = sort_ids(trace);
    *before = malloc((trace->n + 1) * sizeof **before);
    for (size_t i = 0; known && *before && i < trace->n; i++)
        (*before)[i] = row_of(trace, known, trace->retry_of[i]);
    free(known);
    if (known && *before)
        return 0;
    free(*before);
    *before = NULL;
    return ifl_fail_nomem(error);
}

/* ---- checks ---- */

/* When a turn with a think time arrives is not known before the run. */
static bool has_stamp(const struct ifl_trace *trace, size_t row)
{
    return trace->has_stamps && !(trace->think_ns && trace->think_ns[row] >= 0);
}

/* Above 0: row a comes after row b; 0: at the same time, or it is not known. Rows of a trace
 * without stamps arrive in their order. */
static int order(const struct ifl_trace *trace, size_t a, size_t b)
{
    if (!trace->has_stamps)
        return (a > b) - (a < b);
    if (!has_stamp(trace, a) || !has_stamp(trace, b))
        return 0;
    return (trace->arrival_ns[a] > trace->arrival_ns[b]) -
           (trace->arrival_ns[a] < trace->arrival_ns[b]);
}

/* A circle of retries has no row that comes after the next, so the walk ends at the first. */
static bool is_in_circle(const struct ifl_trace *trace, const size_t *before, size_t row)
{
    size_t at = row;
    for (size_t n_steps = 0; n_steps < trace->n; n_steps++) {
        const size_t next = before[at];
        if (next == trace->n || order(trace, at, next) > 0)
            return false;
        if (next == row)
            return true;
        at = next;
    }
    return false; /* it leads into a circle, of which another row is found */
}

/* What the row should repeat instead; NULL: it is as it should be. */
static const char *expected(const struct ifl_trace *trace, const size_t *before, size_t row)
{
    const size_t other = before[row];
    if (other == trace->n)
        return "the request_id of a row of this file";
    if (other == row)
        return "another request than itself";
    if (order(trace, row, other) < 0)
        return "a row that arrives before this one";
    if (trace->n_prompt[row] != trace->n_prompt[other])
        return "a row with as many prompt_tokens";
    return is_in_circle(trace, before, row) ? "no retries in a circle" : NULL;
}

int trace_retries_check(const struct trace_retries *retries, const struct ifl_trace *trace,
                        const char *path, struct ifl_error *error)
{
    if (retries->n == 0)
        return 0;
    size_t *before;
    int rc = ifl_trace_repeated(trace, &before, error);
    for (size_t i = 0; rc == 0 && i < retries->n; i++) {
        const struct trace_retry *of = &retries->of[i];
        const char *wanted = expected(trace, before, of->row);
        if (wanted)
            rc = ifl_fail_at(error, path, of->line, of->column, "retry_of is \"%lld\", expected %s",
                             (long long)trace->retry_of[of->row], wanted);
    }
    free(before);
    return rc;
}
