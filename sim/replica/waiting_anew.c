/* Gives all waiting requests new keys, for orders that do not say when keys change. Each plan then
 * examines every waiting request: the queue reads its entries in the order in which they lie in
 * memory; only the order module reads the records. */
#include <gsl/gsl_heapsort.h>
#include <string.h>

#include "inflight/minmax.h"

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

struct gathered {
    size_t n_near;     /* entries of near, now the first of line */
    size_t n_in_order; /* entries of near and line; those of the heap follow */
};

/* Puts all entries into line: those of near in front, those of the heap behind. False, and nothing
 * has changed but that holes of near are gone: there is no room, or there are other holes. */
static bool gather_in_line(struct waiting *waiting, struct gathered *all)
{
    struct waiter_run *near = &waiting->near, *line = &waiting->line;
    if (waiting->n_near_holes > 0)
        near->tail = waiting_keep(near->of, near->head, near->tail);
    all->n_near = near->tail - near->head;
    all->n_in_order = all->n_near + line->tail - line->head;
    if (all->n_near > line->head || line->tail + waiting->n_heap > FAR_ROOM * waiting->cap ||
        !has_no_holes(waiting))
        return false;
    line->head -= all->n_near;
    memcpy(line->of + line->head, near->of + near->head, all->n_near * sizeof *near->of);
    memcpy(line->of + line->tail, waiting->heap, waiting->n_heap * sizeof *waiting->heap);
    line->tail += waiting->n_heap;
    return true;
}

/* The same without holes, in the array of near, which becomes that of line. */
static void gather_in_near(struct waiting *waiting, struct gathered *all)
{
    struct waiter_run *near = &waiting->near, *line = &waiting->line;
    waiting_run_to_start(near);
    size_t n = waiting_keep(near->of, 0, near->tail);
    all->n_near = n;
    for (size_t i = line->head; i < line->tail; i++)
        if (waits(&line->of[i]))
            near->of[n++] = line->of[i];
    all->n_in_order = n;
    for (size_t i = 0; i < waiting->n_heap; i++)
        if (waits(&waiting->heap[i]))
            near->of[n++] = waiting->heap[i];
    struct waiter *spare = line->of;
    *line = (struct waiter_run){.of = near->of, .tail = n};
    near->of = spare;
    waiting->asked_to = 0;
}

/* Collects in line all requests that were not pushed to the front. Those of near and line are in
 * the order of their former keys. */
static struct gathered gather(struct waiting *waiting)
{
    struct gathered all;
    if (!gather_in_line(waiting, &all))
        gather_in_near(waiting, &all);
    waiting->near.head = waiting->near.tail = waiting->n_near_holes = 0;
    waiting->n_heap = 0;
    return all;
}

/* ---- the questions ---- */

static void note_questions(struct waiting *waiting, size_t from, size_t to)
{
    const size_t first = waiting->asked_from;
    for (size_t i = from; i < to; i++) {
        const struct waiter *w = &waiting->line.of[i];
        waiting->asked[i - first] = &w->r->pub;
        waiting->keys[i - first] = w->key;
    }
}

/* The questions of the last ranking are asked again as they are: in a long queue few entries come,
 * leave or move from one ranking to the next. */
static void renew_questions(struct waiting *waiting, size_t n_near)
{
    const struct waiter_run *line = &waiting->line;
    const size_t behind_near = line->head + n_near;
    if (line->head < waiting->asked_from || line->tail - waiting->asked_from > waiting->cap ||
        waiting->asked_to == 0)
        waiting->asked_from = waiting->asked_to = line->head;
    note_questions(waiting, line->head, behind_near);
    note_questions(waiting, ifl_max(behind_near, waiting->asked_to), line->tail);
    waiting->asked_to = line->tail;
}

/* Index of the first key that is another one, at most n. */
static size_t first_change(const int64_t *a, const int64_t *b, size_t n)
{
    enum { AT_ONCE = 128 };
    size_t i = 0;
    while (i + AT_ONCE <= n && memcmp(a + i, b + i, AT_ONCE * sizeof *a) == 0)
        i += AT_ONCE;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* ---- sorting ---- */

/* Gives the entries from `from` on their keys, and returns how many at the start are in order.
 * Those before `from` are. */
static size_t set_keys(struct waiter *of, const int64_t *key, size_t from, size_t n)
{
    size_t n_sorted = from;
    for (size_t i = from; i < n; i++) {
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
 * and then merged with the others. Returns how many at the start stay where they were.
 * gsl_heapsort works in place; qsort may allocate. */
static size_t sort(struct waiter *of, size_t n_sorted, size_t n, struct waiter *odd)
{
    size_t n_odd = take_odd_out(of, n_sorted, n, odd);
    gsl_heapsort(odd, n_odd, sizeof *odd, by_rank);
    for (size_t n_kept = n - n_odd; n_odd > 0; n--) {
        const bool odd_last = n_kept == 0 || before(&of[n_kept - 1], &odd[n_odd - 1]);
        of[n - 1] = odd_last ? odd[--n_odd] : of[--n_kept];
    }
    const size_t n_kept_back = n_sorted > 0 ? n_sorted - 1 : 0; /* take_odd_out may take the last */
    return ifl_min(n_kept_back, n);
}

/* Entries from the n_same-th on have new keys. */
static void sort_anew(struct waiting *waiting, size_t n_same)
{
    const size_t head = waiting->line.head, n = waiting->line.tail - head;
    struct waiter *of = waiting->line.of + head;
    const size_t n_sorted = set_keys(of, waiting->fresh_keys, n_same, n);
    const size_t n_stay = sort(of, n_sorted, n, waiting->near.of);
    note_questions(waiting, head + ifl_min(n_same, n_stay), head + n);
}

void waiting_rekey(struct waiting *waiting, waiting_rank_fn *rank, void *context)
{
    if (waiting_undescribed(waiting) > 0)
        describe_all(waiting);
    const struct gathered all = gather(waiting);
    renew_questions(waiting, all.n_near);
    const size_t first = waiting->line.head - waiting->asked_from;
    const size_t n = waiting->line.tail - waiting->line.head;
    waiting->n_rankings++;
    rank(context, waiting->asked + first, n, waiting->fresh_keys);
    const size_t n_same = first_change(waiting->fresh_keys, waiting->keys + first, all.n_in_order);
    if (n_same < n)
        sort_anew(waiting, n_same);
}
