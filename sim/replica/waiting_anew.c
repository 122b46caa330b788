/* Gives all waiting requests new keys, for orders that do not say when keys change. A plan then
 * costs a look at each of them: entries are read in their order in memory, and records only by the
 * order itself. */
#include <gsl/gsl_heapsort.h>
#include <string.h>

#include "replica/waiting_parts.h"

/* Gives each request in line a record: keys may begin to change while some have none. */
static void describe_all(struct waiting *waiting)
{
    struct waiter_run *line = &waiting->line;
    for (size_t i = line->head; i < line->tail; i++)
        if (!line->of[i].r)
            waiting_describe(waiting, &line->of[i]);
}

/* True if each entry is of a request that waits. Found without a look at the requests: the records
 * of a long queue are out of the caches. */
static bool has_no_holes(const struct waiting *waiting)
{
    const struct waiter_run *near = &waiting->near, *line = &waiting->line;
    return near->tail - near->head + line->tail - line->head + waiting->n_heap + waiting->n_front ==
           waiting->n;
}

/* Puts all entries into line: those of near in front, those of the heap behind. False, and nothing
 * has changed: there is no room, or there are holes. */
static bool gather_in_line(struct waiting *waiting)
{
    const struct waiter_run *near = &waiting->near;
    struct waiter_run *line = &waiting->line;
    const size_t n_near = near->tail - near->head;
    if (n_near > line->head || line->tail + waiting->n_heap > FAR_ROOM * waiting->cap ||
        !has_no_holes(waiting))
        return false;
    line->head -= n_near;
    memcpy(line->of + line->head, near->of + near->head, n_near * sizeof *near->of);
    memcpy(line->of + line->tail, waiting->heap, waiting->n_heap * sizeof *waiting->heap);
    line->tail += waiting->n_heap;
    return true;
}

/* The same without holes, in the array of near, which becomes that of line. */
static void gather_in_near(struct waiting *waiting)
{
    struct waiter_run *near = &waiting->near, *line = &waiting->line;
    waiting_run_to_start(near);
    size_t n = waiting_keep(near->of, 0, near->tail);
    for (size_t i = line->head; i < line->tail; i++)
        if (waits(&line->of[i]))
            near->of[n++] = line->of[i];
    for (size_t i = 0; i < waiting->n_heap; i++)
        if (waits(&waiting->heap[i]))
            near->of[n++] = waiting->heap[i];
    struct waiter *spare = line->of;
    *line = (struct waiter_run){.of = near->of, .tail = n};
    near->of = spare;
}

/* Collects in line all requests that were not pushed to the front. Those of near and line are in
 * the order of their former keys; those of the heap follow. */
static void gather(struct waiting *waiting)
{
    if (!gather_in_line(waiting))
        gather_in_near(waiting);
    waiting->near.head = waiting->near.tail = waiting->n_near_holes = 0;
    waiting->n_heap = 0;
}

/* Gives the entries their keys, and returns how many at the start are in order. */
static size_t set_keys(struct waiter *of, const int64_t *key, size_t n)
{
    size_t n_sorted = 0;
    for (size_t i = 0; i < n; i++) {
        of[i].key = key[i];
        if (i == n_sorted && (i == 0 || !before(&of[i], &of[i - 1])))
            n_sorted++;
    }
    return n_sorted;
}

/* Moves entries from `from` on that are out of order to `odd`, and returns how many. If one entry
 * stands too far ahead, that one is moved, not all the entries behind it. */
static size_t take_odd_out(struct waiter *of, size_t from, size_t n, struct waiter *odd)
{
    size_t n_kept = from, n_odd = 0;
    for (size_t i = from; i < n; i++) {
        const struct waiter w = of[i];
        if (n_kept == 0 || !before(&w, &of[n_kept - 1])) {
            of[n_kept++] = w;
        } else if (n_kept == 1 || !before(&w, &of[n_kept - 2])) {
            odd[n_odd++] = of[n_kept - 1];
            of[n_kept - 1] = w;
        } else {
            odd[n_odd++] = w;
        }
    }
    return n_odd;
}

static int by_rank(const void *a, const void *b)
{
    return before(a, b) ? -1 : 1;
}

/* Orders change little from one plan to the next, so only entries with another position are sorted,
 * and then merged with the others. gsl_heapsort works in place; qsort may allocate. */
static void sort(struct waiter *of, size_t n_sorted, size_t n, struct waiter *odd)
{
    size_t n_odd = take_odd_out(of, n_sorted, n, odd);
    gsl_heapsort(odd, n_odd, sizeof *odd, by_rank);
    for (size_t n_kept = n - n_odd; n_odd > 0; n--) {
        const bool odd_last = n_kept == 0 || before(&of[n_kept - 1], &odd[n_odd - 1]);
        of[n - 1] = odd_last ? odd[--n_odd] : of[--n_kept];
    }
}

void waiting_rekey(struct waiting *waiting, waiting_rank_fn *rank, void *context)
{
    describe_all(waiting);
    gather(waiting);
    struct waiter *of = waiting->line.of + waiting->line.head;
    const size_t n = waiting->line.tail - waiting->line.head;
    waiting->n_rankings++;
    for (size_t i = 0; i < n; i++)
        waiting->ranked[i] = &of[i].r->pub;
    rank(context, waiting->ranked, n, waiting->keys);
    sort(of, set_keys(of, waiting->keys, n), n, waiting->near.of);
}
