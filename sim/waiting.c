#include "waiting.h"

#include <stdlib.h>
#include <string.h>

static bool before(const struct waiter *a, const struct waiter *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    if (a->arrival_ns != b->arrival_ns)
        return a->arrival_ns < b->arrival_ns;
    return a->serial < b->serial;
}

static int resize(struct waiter **array, size_t n)
{
    struct waiter *resized = realloc(*array, n * sizeof *resized);
    if (!resized)
        return -1;
    *array = resized;
    return 0;
}

/* near may start anywhere in its array, and far has holes, so they get twice the room. */
int waiting_reserve(struct waiting *waiting, size_t n)
{
    if (n <= waiting->cap)
        return 0;
    const struct ifl_request **ranked = realloc(waiting->ranked, n * sizeof *ranked);
    if (ranked)
        waiting->ranked = ranked;
    int64_t *keys = realloc(waiting->keys, n * sizeof *keys);
    if (keys)
        waiting->keys = keys;
    if (!ranked || !keys || resize(&waiting->front, n) < 0 || resize(&waiting->near, 2 * n) < 0 ||
        resize(&waiting->far, 2 * n) < 0)
        return -1;
    waiting->cap = n;
    return 0;
}

void waiting_destroy(struct waiting *waiting)
{
    free(waiting->front);
    free(waiting->near);
    free(waiting->far);
    free(waiting->ranked);
    free(waiting->keys);
    *waiting = (struct waiting){0};
}

/* ---- tickets ---- */

static bool waits(const struct waiter *w)
{
    return w->r->ticket == w->ticket;
}

static struct waiter admit(struct waiting *waiting, struct live_request *r, int64_t key,
                           int64_t arrival_ns)
{
    r->ticket = ++waiting->n_tickets;
    return (struct waiter){key, arrival_ns, r->pub.queued_serial, r->ticket, r};
}

/* ---- far: a heap ---- */

static void far_insert(struct waiting *waiting, struct waiter w)
{
    size_t i = waiting->n_far++;
    for (; i > 0 && before(&w, &waiting->far[(i - 1) / 2]); i = (i - 1) / 2)
        waiting->far[i] = waiting->far[(i - 1) / 2];
    waiting->far[i] = w;
}

/* Half of a heap that has filled up is holes. */
static void far_push(struct waiting *waiting, struct waiter w)
{
    if (waiting->n_far == 2 * waiting->cap) {
        const size_t n = waiting->n_far;
        waiting->n_far = 0;
        for (size_t i = 0; i < n; i++)
            if (waits(&waiting->far[i]))
                far_insert(waiting, waiting->far[i]);
    }
    far_insert(waiting, w);
}

static struct waiter far_pop(struct waiting *waiting)
{
    const struct waiter top = waiting->far[0];
    const struct waiter last = waiting->far[--waiting->n_far];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < waiting->n_far; i = c) {
        if (c + 1 < waiting->n_far && before(&waiting->far[c + 1], &waiting->far[c]))
            c++;
        if (!before(&waiting->far[c], &last))
            break;
        waiting->far[i] = waiting->far[c];
    }
    waiting->far[i] = last;
    return top;
}

/* ---- near: a sorted run ---- */

static void near_make_room(struct waiting *waiting)
{
    if (waiting->near_tail < 2 * waiting->cap)
        return;
    const size_t n = waiting->near_tail - waiting->near_head;
    memmove(waiting->near, waiting->near + waiting->near_head, n * sizeof *waiting->near);
    waiting->near_head = 0;
    waiting->near_tail = n;
}

static void near_insert(struct waiting *waiting, struct waiter w)
{
    near_make_room(waiting);
    size_t i = waiting->near_tail++;
    for (; i > waiting->near_head && before(&w, &waiting->near[i - 1]); i--)
        waiting->near[i] = waiting->near[i - 1];
    waiting->near[i] = w;
}

/* ---- the queue ---- */

static void insert(struct waiting *waiting, struct waiter w)
{
    const bool near_empty = waiting->near_tail == waiting->near_head;
    const bool near =
        near_empty ? waiting->n_far == 0 : before(&w, &waiting->near[waiting->near_tail - 1]);
    if (near)
        near_insert(waiting, w);
    else
        far_push(waiting, w);
}

void waiting_push(struct waiting *waiting, struct live_request *r, int64_t key, int64_t arrival_ns)
{
    insert(waiting, admit(waiting, r, key, arrival_ns));
    waiting->n++;
    waiting->n_tokens += r->pub.n_tokens;
}

void waiting_push_front(struct waiting *waiting, struct live_request *r)
{
    waiting->front[waiting->n_front++] = admit(waiting, r, 0, 0);
    waiting->n++;
    waiting->n_tokens += r->pub.n_tokens;
}

void waiting_leave(struct waiting *waiting, struct live_request *r)
{
    waiting->n--;
    waiting->n_tokens -= r->pub.n_tokens;
    waiting->holes = true;
    r->ticket = 0;
}

void waiting_rerank(struct waiting *waiting, struct live_request *r, int64_t key,
                    int64_t arrival_ns)
{
    for (size_t i = 0; i < waiting->n_front; i++)
        if (waiting->front[i].r == r && waits(&waiting->front[i]))
            return;
    waiting->holes = true;
    insert(waiting, admit(waiting, r, key, arrival_ns));
}

/* Keeps those of [from, to) that wait, to the left; where they end. */
static size_t keep_waiters(struct waiter *of, size_t from, size_t to)
{
    size_t n = from;
    for (size_t i = from; i < to; i++)
        if (waits(&of[i]))
            of[n++] = of[i];
    return n;
}

void waiting_fill_holes(struct waiting *waiting)
{
    waiting->holes = false;
    waiting->n_front = keep_waiters(waiting->front, 0, waiting->n_front);
    while (waiting->near_head < waiting->near_tail && !waits(&waiting->near[waiting->near_head]))
        waiting->near_head++;
    waiting->near_tail = keep_waiters(waiting->near, waiting->near_head, waiting->near_tail);
    if (waiting->near_head == waiting->near_tail)
        waiting->near_head = waiting->near_tail = 0;
}

struct live_request *waiting_look(struct waiting *waiting, uint64_t at[2])
{
    while (at[0] < waiting->n_front) {
        const struct waiter *w = &waiting->front[waiting->n_front - 1 - at[0]++];
        if (waits(w))
            return w->r;
    }
    for (;;) {
        const size_t i = waiting->near_head + (uint32_t)at[1];
        if (i == waiting->near_tail) {
            if (waiting->n_far == 0)
                return NULL;
            const struct waiter w = far_pop(waiting);
            if (waits(&w))
                near_insert(waiting, w);
            continue; /* making room may have moved the run */
        }
        at[1]++;
        if (waits(&waiting->near[i]))
            return waiting->near[i].r;
    }
}

/* Everyone of near and far, in near, without holes. */
static size_t gather(struct waiting *waiting)
{
    size_t n = waiting->near_tail - waiting->near_head;
    memmove(waiting->near, waiting->near + waiting->near_head, n * sizeof *waiting->near);
    n = keep_waiters(waiting->near, 0, n);
    for (size_t i = 0; i < waiting->n_far; i++)
        if (waits(&waiting->far[i]))
            waiting->near[n++] = waiting->far[i];
    waiting->near_head = waiting->near_tail = waiting->n_far = 0;
    return n;
}

void waiting_rekey(struct waiting *waiting, waiting_rank_fn *rank, void *context)
{
    const size_t n = gather(waiting);
    waiting->n_rankings++;
    for (size_t i = 0; i < n; i++)
        waiting->ranked[i] = &waiting->near[i].r->pub;
    rank(context, waiting->ranked, n, waiting->keys);
    for (size_t i = 0; i < n; i++) {
        struct waiter w = waiting->near[i];
        w.key = waiting->keys[i];
        far_push(waiting, w);
    }
}
