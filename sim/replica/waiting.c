#include "replica/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "replica/waiting_parts.h"

#define GROW(array, n_used, n) (array_grow(&(array), n_used, n, sizeof *(array)) < 0)

int waiting_reserve(struct waiting *waiting, size_t n)
{
    struct waiter_run *near = &waiting->near, *line = &waiting->line;
    if (n <= waiting->cap)
        return 0;
    waiting->asked_to = 0;
    if (GROW(waiting->asked, 0, n) || GROW(waiting->keys, 0, n) ||
        GROW(waiting->fresh_keys, 0, n) || GROW(waiting->front, waiting->n_front, n) ||
        GROW(near->of, near->tail, NEAR_ROOM * n) || GROW(line->of, line->tail, NEAR_ROOM * n) ||
        GROW(waiting->heap, waiting->n_heap, FAR_ROOM * n))
        return IFL_E_NOMEM;
    if (n > WAITING_SHORT && GROW(waiting->undescribed, waiting->undescribed_tail, FAR_ROOM * n))
        return IFL_E_NOMEM;
    waiting->cap = n;
    return 0;
}

void waiting_destroy(struct waiting *waiting)
{
    free(waiting->front);
    free(waiting->near.of);
    free(waiting->line.of);
    free(waiting->heap);
    free(waiting->undescribed);
    free(waiting->asked);
    free(waiting->keys);
    free(waiting->fresh_keys);
    *waiting = (struct waiting){0};
}

/* ---- sums ---- */

static void count_in(struct waiting *waiting, int32_t n_tokens)
{
    waiting->n++;
    waiting->n_tokens += n_tokens;
    waiting->longest_tokens = ifl_max(waiting->longest_tokens, n_tokens);
    waiting->n_blocks += kv_blocks_for(n_tokens, waiting->block);
}

static void count_out(struct waiting *waiting, int32_t n_tokens)
{
    waiting->n--;
    waiting->n_tokens -= n_tokens;
    waiting->n_blocks -= kv_blocks_for(n_tokens, waiting->block);
}

void waiting_add_token(struct waiting *waiting, const struct live_request *r)
{
    ifl_assert(r->ticket != 0);
    count_out(waiting, r->pub.stale.n_tokens);
    count_in(waiting, r->pub.stale.n_tokens + 1);
}

/* ---- tickets ---- */

static struct waiter admit(struct waiting *waiting, struct live_request *r, int64_t key,
                           int64_t arrival_ns)
{
    r->ticket = ++waiting->n_tickets;
    r->shown_plan = 0;
    return (struct waiter){key, arrival_ns, r->pub.queued_serial, r->ticket, r};
}

size_t waiting_keep(struct waiter *of, size_t from, size_t to)
{
    size_t n = from;
    for (size_t i = from; i < to; i++)
        if (waits(&of[i]))
            of[n++] = of[i];
    return n;
}

/* ---- the heap ---- */

static void heap_insert(struct waiting *waiting, struct waiter w)
{
    struct waiter *heap = waiting->heap;
    size_t i = waiting->n_heap++;
    for (; i > 0 && before(&w, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = w;
}

/* A heap that is full is half holes, which are removed first. */
IFL_APART static void heap_push(struct waiting *waiting, struct waiter w)
{
    if (waiting->n_heap == FAR_ROOM * waiting->cap) {
        const size_t n = waiting_keep(waiting->heap, 0, waiting->n_heap);
        waiting->n_heap = 0;
        for (size_t i = 0; i < n; i++)
            heap_insert(waiting, waiting->heap[i]);
    }
    heap_insert(waiting, w);
}

IFL_APART static struct waiter heap_pop(struct waiting *waiting)
{
    struct waiter *heap = waiting->heap;
    const struct waiter top = heap[0];
    const struct waiter last = heap[--waiting->n_heap];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < waiting->n_heap; i = c) {
        if (c + 1 < waiting->n_heap && before(&heap[c + 1], &heap[c]))
            c++;
        if (!before(&heap[c], &last))
            break;
        heap[i] = heap[c];
    }
    heap[i] = last;
    return top;
}

/* ---- sorted runs ---- */

static bool is_empty(const struct waiter_run *run)
{
    return run->head == run->tail;
}

static bool before_last(const struct waiter *w, const struct waiter_run *run)
{
    return !is_empty(run) && before(w, &run->of[run->tail - 1]);
}

/* Moves [head, tail), which is mostly empty, to the start of its array. Holes of near stay, because
 * cursors count them. */
static void move_to_start(void *of, size_t element_bytes, size_t *head, size_t *tail)
{
    *tail -= *head;
    if (*tail > 0)
        memmove(of, (char *)of + *head * element_bytes, *tail * element_bytes);
    *head = 0;
}

void waiting_run_to_start(struct waiter_run *run)
{
    move_to_start(run->of, sizeof *run->of, &run->head, &run->tail);
}

/* More entries are gone than are left. Then moving the rest to the start costs no more than adding
 * the entries did, and a queue does not wander through memory. */
static bool mostly_gone(size_t head, size_t tail)
{
    return head > tail - head;
}

/* Index behind all entries that w does not go before. */
static size_t place_of(const struct waiter_run *run, const struct waiter *w)
{
    size_t low = run->head, high = run->tail;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (before(w, &run->of[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Makes room before a long run, so that an insertion in its first half moves only the entries
 * before it. Example: a request that begins to starve. */
static void make_room_before(struct waiter_run *run, size_t cap)
{
    const size_t n = run->tail - run->head, n_before = n / 2;
    if (run->head > 0 || n < 64 || run->tail + n_before > cap)
        return;
    memmove(run->of + n_before, run->of, n * sizeof *run->of);
    run->head = n_before;
    run->tail += n_before;
}

/* Inserts w, which goes before the last entry. */
IFL_APART static void squeeze_in(struct waiter_run *near, size_t cap, struct waiter w)
{
    if (before(&w, &near->of[(near->head + near->tail) / 2]))
        make_room_before(near, cap);
    const size_t at = place_of(near, &w);
    const size_t n_before = at - near->head, n_behind = near->tail - at;
    if (n_before < n_behind && near->head > 0) {
        memmove(&near->of[near->head - 1], &near->of[near->head], n_before * sizeof w);
        near->head--;
        near->of[at - 1] = w;
    } else {
        memmove(&near->of[at + 1], &near->of[at], n_behind * sizeof w);
        near->tail++;
        near->of[at] = w;
    }
}

/* Between two plans any number of requests may come, be looked at and leave, and a module may rank
 * any number of times. The holes that they leave go where there is no more room; cursors, which
 * count holes, begin anew. */
static void drop_holes(struct waiting *waiting)
{
    struct waiter_run *near = &waiting->near;
    near->tail = waiting_keep(near->of, near->head, near->tail);
    waiting->n_front = waiting_keep(waiting->front, 0, waiting->n_front);
    waiting->n_near_holes = 0;
    waiting->n_rankings++;
}

IFL_APART static void make_room_in_near(struct waiting *waiting)
{
    struct waiter_run *near = &waiting->near;
    waiting_run_to_start(near);
    if (near->tail == NEAR_ROOM * waiting->cap)
        drop_holes(waiting);
}

static inline void near_insert(struct waiting *waiting, struct waiter w)
{
    struct waiter_run *near = &waiting->near;
    const size_t cap = NEAR_ROOM * waiting->cap;
    if (IFL_RARE(near->tail == cap))
        make_room_in_near(waiting);
    if (IFL_RARE(before_last(&w, near)))
        squeeze_in(near, cap, w);
    else
        near->of[near->tail++] = w;
}

static inline void line_to_start(struct waiting *waiting)
{
    waiting_run_to_start(&waiting->line);
    waiting->asked_to = 0;
}

IFL_APART static void make_room_in_line(struct waiting *waiting)
{
    line_to_start(waiting);
    waiting->line.tail = waiting_keep(waiting->line.of, 0, waiting->line.tail);
}

static void line_append(struct waiting *waiting, struct waiter w)
{
    struct waiter_run *line = &waiting->line;
    if (IFL_RARE(line->tail == FAR_ROOM * waiting->cap))
        make_room_in_line(waiting);
    line->of[line->tail++] = w;
}

static struct waiter line_pop(struct waiting *waiting)
{
    struct waiter_run *line = &waiting->line;
    if (IFL_RARE(!line->of[line->head].r))
        waiting_describe(waiting, &line->of[line->head]);
    const struct waiter head = line->of[line->head++];
    if (mostly_gone(line->head, line->tail))
        line_to_start(waiting);
    return head;
}

/* ---- requests without a record ---- */

IFL_APART static void undescribed_to_start(struct waiting *waiting)
{
    move_to_start(waiting->undescribed, sizeof *waiting->undescribed, &waiting->undescribed_head,
                  &waiting->undescribed_tail);
}

static void put_off(struct waiting *waiting, const struct arrival *arrival)
{
    if (waiting->undescribed_tail == FAR_ROOM * waiting->cap)
        undescribed_to_start(waiting);
    waiting->undescribed[waiting->undescribed_tail++] = *arrival;
}

IFL_APART bool waiting_line_up(struct waiting *waiting, const struct arrival *arrival, int64_t key)
{
    ifl_assert(waiting->pool && waiting->n < waiting->cap);
    const struct waiter w = {key, arrival->at_ns, arrival->serial, waiting->n_tickets + 1, NULL};
    if (before_last(&w, &waiting->near) || before_last(&w, &waiting->line))
        return false;
    line_append(waiting, w);
    put_off(waiting, arrival);
    waiting->n_tickets++;
    count_in(waiting, arrival->n_prompt);
    return true;
}

IFL_APART void waiting_describe(struct waiting *waiting, struct waiter *w)
{
    w->r = live_take(waiting->pool);
    live_describe(w->r, &waiting->undescribed[waiting->undescribed_head++]);
    w->r->ticket = w->ticket;
    if (mostly_gone(waiting->undescribed_head, waiting->undescribed_tail))
        undescribed_to_start(waiting);
}

/* ---- the queue ---- */

IFL_APART static void insert_among(struct waiting *waiting, struct live_request *r, int64_t key,
                                   int64_t arrival_ns)
{
    const struct waiter w = admit(waiting, r, key, arrival_ns);
    if (before_last(&w, &waiting->near))
        near_insert(waiting, w);
    else if (before_last(&w, &waiting->line))
        heap_push(waiting, w);
    else
        line_append(waiting, w);
}

IFL_HOT static void insert(struct waiting *waiting, struct live_request *r, int64_t key,
                           int64_t arrival_ns)
{
    if (is_empty(&waiting->near) && is_empty(&waiting->line))
        line_append(waiting, admit(waiting, r, key, arrival_ns));
    else
        insert_among(waiting, r, key, arrival_ns);
}

void waiting_push(struct waiting *waiting, struct live_request *r, int64_t key, int64_t arrival_ns)
{
    ifl_assert(r->ticket == 0 && waiting->n < waiting->cap);
    insert(waiting, r, key, arrival_ns);
    count_in(waiting, r->pub.stale.n_tokens);
}

/* Holes may stand anywhere. */
static bool stands_before_loaded(const struct waiter *w)
{
    return !waits(w) || w->r->pub.state == IFL_LOADED;
}

/* Behind the requests that are LOADED, in front of all others. */
static void push_behind_loaded(struct waiting *waiting, struct live_request *r)
{
    if (IFL_RARE(waiting->n_front == waiting->cap))
        drop_holes(waiting);
    size_t at = waiting->n_front++;
    for (; at > 0 && stands_before_loaded(&waiting->front[at - 1]); at--)
        waiting->front[at] = waiting->front[at - 1];
    waiting->front[at] = admit(waiting, r, 0, 0);
    count_in(waiting, r->pub.stale.n_tokens);
}

void waiting_push_front(struct waiting *waiting, struct live_request *r)
{
    ifl_assert(r->ticket == 0 && waiting->n < waiting->cap);
    push_behind_loaded(waiting, r);
}

void waiting_push_loaded(struct waiting *waiting, struct live_request *r)
{
    ifl_assert(r->ticket == 0 && waiting->n < waiting->cap && r->pub.state == IFL_LOADED);
    push_behind_loaded(waiting, r);
}

struct live_request *waiting_next_loaded(const struct waiting *waiting, uint64_t *at)
{
    while (*at < waiting->n_front) {
        const struct waiter *w = &waiting->front[waiting->n_front - 1 - (size_t)(*at)++];
        if (waits(w) && w->r->pub.state == IFL_LOADED)
            return w->r;
    }
    return NULL;
}

static size_t count_preempted(const struct waiter *of, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        n += of[i].r && waits(&of[i]) && of[i].r->pub.n_preempted > 0;
    return n;
}

size_t waiting_count_preempted(const struct waiting *waiting)
{
    const struct waiter_run *near = &waiting->near, *line = &waiting->line;
    return count_preempted(waiting->front, 0, waiting->n_front) +
           count_preempted(near->of, near->head, near->tail) +
           count_preempted(line->of, line->head, line->tail) +
           count_preempted(waiting->heap, 0, waiting->n_heap);
}

void waiting_leave(struct waiting *waiting, struct live_request *r)
{
    ifl_assert(r->ticket != 0);
    count_out(waiting, r->pub.stale.n_tokens);
    waiting->holes = true;
    waiting->n_near_holes++;
    r->ticket = 0;
}

void waiting_rerank(struct waiting *waiting, struct live_request *r, int64_t key,
                    int64_t arrival_ns)
{
    ifl_assert(r->ticket != 0);
    for (size_t i = 0; i < waiting->n_front; i++)
        if (waiting->front[i].r == r && waits(&waiting->front[i]))
            return;
    waiting->holes = true;
    waiting->n_near_holes++;
    insert(waiting, r, key, arrival_ns);
}

/* Holes at the head go at once. Finding the others costs a walk over near, so they go only when
 * they are many. */
IFL_HOT void waiting_fill_holes(struct waiting *waiting)
{
    struct waiter_run *near = &waiting->near;
    waiting->holes = false;
    waiting->n_front = waiting_keep(waiting->front, 0, waiting->n_front);
    for (; !is_empty(near) && !waits(&near->of[near->head]); near->head++)
        waiting->n_near_holes -= waiting->n_near_holes > 0;
    if (IFL_RARE(4 * waiting->n_near_holes > near->tail - near->head)) {
        near->tail = waiting_keep(near->of, near->head, near->tail);
        waiting->n_near_holes = 0;
    }
    if (mostly_gone(near->head, near->tail))
        waiting_run_to_start(near);
}

/* Moves the best ranked entry of line and heap to near; drops it if it is a hole. False: both are
 * empty. */
static bool bring_near(struct waiting *waiting)
{
    const struct waiter_run *line = &waiting->line;
    const bool none_in_line = is_empty(line);
    if (none_in_line && waiting->n_heap == 0)
        return false;
    const bool in_line = !IFL_RARE(waiting->n_heap > 0) ||
                         (!none_in_line && before(&line->of[line->head], &waiting->heap[0]));
    const struct waiter w = in_line ? line_pop(waiting) : heap_pop(waiting);
    if (waits(&w))
        near_insert(waiting, w);
    return true;
}

/* A walk over a long queue finds no record in the caches: what it reads of one that it comes to
 * soon is fetched now. */
static void fetch_ahead(const struct waiting *waiting)
{
    enum { DISTANCE = 8 };
    const struct waiter_run *line = &waiting->line;
    if (line->tail - line->head <= DISTANCE || !line->of[line->head + DISTANCE].r)
        return;
    const struct live_request *r = line->of[line->head + DISTANCE].r;
    __builtin_prefetch(&r->pub.state);
    __builtin_prefetch(&r->pub.parts);
    __builtin_prefetch(&r->ticket, 1);
}

void waiting_note_shown(struct waiting *waiting, uint64_t at[2], struct live_request *r)
{
    if (at[0] >> 32 == 0 && waiting->n_cursors == WAITING_MOST_CURSORS)
        return;
    if (at[0] >> 32 == 0)
        at[0] |= (uint64_t)++waiting->n_cursors << 32;
    if (r->shown_plan != waiting->n_plans)
        r->shown_to = 0;
    r->shown_plan = waiting->n_plans;
    r->shown_to |= UINT64_C(1) << ((at[0] >> 32) - 1);
    fetch_ahead(waiting);
}

static bool was_shown(const struct waiting *waiting, const uint64_t at[2],
                      const struct live_request *r)
{
    const uint64_t cursor = at[0] >> 32;
    return IFL_RARE(cursor > 0) && r->shown_plan == waiting->n_plans &&
           r->shown_to >> (cursor - 1) & 1;
}

IFL_HOT struct live_request *waiting_look(struct waiting *waiting, uint64_t at[2])
{
    const struct waiter_run *near = &waiting->near;
    while (IFL_RARE((uint32_t)at[0] < waiting->n_front)) {
        const struct waiter *w = &waiting->front[waiting->n_front - 1 - (uint32_t)at[0]++];
        if (waits(w) && !was_shown(waiting, at, w->r))
            return w->r;
    }
    for (;;) {
        const size_t i = near->head + (uint32_t)at[1];
        if (i >= near->tail) { /* beyond it: a cursor of an earlier plan */
            if (!bring_near(waiting))
                return NULL;
            waiting_renew(waiting, at);
            continue; /* making room may have moved the run */
        }
        at[1]++;
        if (waits(&near->of[i]) && !was_shown(waiting, at, near->of[i].r))
            return near->of[i].r;
    }
}

static void each(const struct waiter *of, size_t n, key_fn *see, void *context)
{
    for (size_t i = 0; i < n; i++)
        if (of[i].r && waits(&of[i]))
            see(context, of[i].r, of[i].key);
}

void waiting_each(const struct waiting *waiting, key_fn *see, void *context)
{
    const struct waiter_run *near = &waiting->near, *line = &waiting->line;
    each(near->of + near->head, near->tail - near->head, see, context);
    each(line->of + line->head, line->tail - line->head, see, context);
    each(waiting->heap, waiting->n_heap, see, context);
}
