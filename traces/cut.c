/* Which requests of a trace are flown: lengths, shuffle, stamps, skip, limit, in this order. */
#include "traces.h"

#include <string.h>

#include "inflight/random.h"

/* The rows that are left, in order, and how many each filter removed. */
struct cut {
    const struct ifl_trace *whole;
    const struct ifl_trace_window *window;
    uint64_t *row; /* [n] */
    size_t n;
    size_t n_by_length, n_by_stamp, n_by_skip;
};

static bool length_fits(const struct cut *cut, size_t row)
{
    const struct ifl_trace_window *w = cut->window;
    const int32_t prompt = cut->whole->n_prompt[row], output = cut->whole->n_output[row];
    return prompt >= w->min_prompt && output >= w->min_output &&
           (w->max_prompt == 0 || prompt <= w->max_prompt) &&
           (w->max_total == 0 || (int64_t)prompt + output <= w->max_total);
}

static bool stamp_fits(const struct cut *cut, size_t row)
{
    const int64_t at_ns = cut->whole->arrival_ns[row];
    return at_ns >= cut->window->from_ns && (cut->window->to_ns == 0 || at_ns < cut->window->to_ns);
}

static size_t keep(struct cut *cut, bool (*fits)(const struct cut *, size_t row))
{
    const size_t n_before = cut->n;
    cut->n = 0;
    for (size_t i = 0; i < n_before; i++)
        if (fits(cut, cut->row[i]))
            cut->row[cut->n++] = cut->row[i];
    return n_before - cut->n;
}

/* Fisher and Yates, as Durstenfeld wrote it (CACM 7(7), algorithm 235). */
static void shuffle(struct cut *cut)
{
    for (size_t i = cut->n; i > 1; i--) {
        const size_t j =
            (size_t)(ifl_draw(cut->window->shuffle_seed, IFL_DRAW_SHUFFLE, i - 1, 0) % i);
        const uint64_t row = cut->row[i - 1];
        cut->row[i - 1] = cut->row[j];
        cut->row[j] = row;
    }
}

static void skip(struct cut *cut)
{
    cut->n_by_skip = cut->window->skip < cut->n ? (size_t)cut->window->skip : cut->n;
    cut->n -= cut->n_by_skip;
    memmove(cut->row, cut->row + cut->n_by_skip, cut->n * sizeof *cut->row);
}

static void limit(struct cut *cut, const struct ifl_notes *notes)
{
    const uint64_t limit = cut->window->limit;
    if (limit > cut->n)
        trace_note(notes, "%zu requests are there, fewer than the limit of %llu", cut->n,
                   (unsigned long long)limit);
    else if (limit > 0)
        cut->n = (size_t)limit;
}

static int fail_empty(const struct cut *cut, const char *path, struct ifl_error *error)
{
    const char *last = cut->n_by_skip    ? "skip"
                       : cut->n_by_stamp ? "the window of stamps"
                                         : "the limits on lengths";
    return ifl_fail_at(error, path, 0, 0,
                       "no request is left, %s removed the last: of %zu, lengths removed %zu, "
                       "stamps %zu, skip %zu",
                       last, cut->whole->n, cut->n_by_length, cut->n_by_stamp, cut->n_by_skip);
}

static int apply(struct cut *cut, const char *path, const struct ifl_notes *notes,
                 struct ifl_error *error)
{
    cut->n_by_length = keep(cut, length_fits);
    if (cut->window->shuffle)
        shuffle(cut);
    if (cut->window->from_ns != 0 || cut->window->to_ns != 0)
        cut->n_by_stamp = keep(cut, stamp_fits);
    skip(cut);
    if (cut->n == 0)
        return fail_empty(cut, path, error);
    limit(cut, notes);
    return 0;
}

int ifl_trace_cut(const struct ifl_trace *whole, const struct ifl_trace_window *window,
                  const char *path, const struct ifl_notes *notes, struct ifl_trace *trace,
                  struct ifl_error *error)
{
    ifl_assert(trace_has_lengths(whole));
    *trace = (struct ifl_trace){0};
    if ((window->from_ns != 0 || window->to_ns != 0) && !whole->has_stamps)
        return ifl_fail_at(error, path, 0, 0,
                           "the trace has no stamps, expected some for a window of stamps");
    struct cut cut = {.whole = whole,
                      .window = window,
                      .row = malloc((whole->n + 1) * sizeof *cut.row),
                      .n = whole->n};
    if (!cut.row)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < whole->n; i++)
        cut.row[i] = i;
    const int rc = apply(&cut, path, notes, error);
    if (rc == 0)
        return trace_gather(whole, cut.row, cut.n, trace, error);
    free(cut.row);
    return rc;
}
