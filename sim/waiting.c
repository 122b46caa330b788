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

int waiting_reserve(struct waiting *waiting, size_t n)
{
    if (n <= waiting->cap)
        return 0;
    struct live_request **front = realloc(waiting->front, n * sizeof *front);
    if (front)
        waiting->front = front;
    /* near may start anywhere in its array, so it gets twice the room */
    struct waiter *near = realloc(waiting->near, 2 * n * sizeof *near);
    if (near)
        waiting->near = near;
    struct waiter *far = realloc(waiting->far, n * sizeof *far);
    if (far)
        waiting->far = far;
    const struct ifl_request **ranked = realloc(waiting->ranked, n * sizeof *ranked);
    if (ranked)
        waiting->ranked = ranked;
    int64_t *keys = realloc(waiting->keys, n * sizeof *keys);
    if (keys)
        waiting->keys = keys;
    if (!front || !near || !far || !ranked || !keys)
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

/* ---- far: a heap ---- */

static void far_push(struct waiting *waiting, struct waiter w)
{
    size_t i = waiting->n_far++;
    for (; i > 0 && before(&w, &waiting->far[(i - 1) / 2]); i = (i - 1) / 2)
        waiting->far[i] = waiting->far[(i - 1) / 2];
    waiting->far[i] = w;
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

void waiting_push(struct waiting *waiting, struct live_request *r, int64_t key, int64_t arrival_ns)
{
    const struct waiter w = {key, arrival_ns, r->pub.queued_serial, r};
    const bool near = waiting->near_tail > waiting->near_head &&
                      before(&w, &waiting->near[waiting->near_tail - 1]);
    if (near)
        near_insert(waiting, w);
    else
        far_push(waiting, w);
    waiting->n++;
    waiting->n_tokens += r->pub.n_tokens;
}

void waiting_push_front(struct waiting *waiting, struct live_request *r)
{
    waiting->front[waiting->n_front++] = r;
    waiting->n++;
    waiting->n_tokens += r->pub.n_tokens;
}

static bool leave_front(struct waiting *waiting, const struct live_request *r)
{
    for (size_t i = waiting->n_front; i-- > 0;)
        if (waiting->front[i] == r) {
            waiting->front[i] = NULL;
            return true;
        }
    return false;
}

static bool leave_run(struct waiter *of, size_t from, size_t to, const struct live_request *r,
                      size_t *at)
{
    for (size_t i = from; i < to; i++)
        if (of[i].r == r) {
            of[i].r = NULL;
            *at = i;
            return true;
        }
    return false;
}

/* Plans take requests in order, so the search goes on where the last one ended. */
static bool leave_near(struct waiting *waiting, const struct live_request *r)
{
    const size_t hint =
        waiting->near_left > waiting->near_head ? waiting->near_left : waiting->near_head;
    return leave_run(waiting->near, hint, waiting->near_tail, r, &waiting->near_left) ||
           leave_run(waiting->near, waiting->near_head, waiting->near_tail, r, &waiting->near_left);
}

void waiting_leave(struct waiting *waiting, const struct live_request *r)
{
    size_t far_at;
    waiting->n--;
    waiting->n_tokens -= r->pub.n_tokens;
    waiting->holes = true;
    if (!leave_front(waiting, r) && !leave_near(waiting, r))
        leave_run(waiting->far, 0, waiting->n_far, r, &far_at);
}

void waiting_tidy(struct waiting *waiting)
{
    if (!waiting->holes)
        return;
    waiting->holes = false;
    size_t n = 0;
    for (size_t i = 0; i < waiting->n_front; i++)
        if (waiting->front[i])
            waiting->front[n++] = waiting->front[i];
    waiting->n_front = n;
    while (waiting->near_head < waiting->near_tail && !waiting->near[waiting->near_head].r)
        waiting->near_head++;
    size_t tail = waiting->near_head;
    for (size_t i = waiting->near_head; i < waiting->near_tail; i++)
        if (waiting->near[i].r)
            waiting->near[tail++] = waiting->near[i];
    waiting->near_tail = tail;
    waiting->near_left = 0;
    if (waiting->near_head == waiting->near_tail)
        waiting->near_head = waiting->near_tail = 0;
}

void waiting_renew(const struct waiting *waiting, uint64_t at[2])
{
    if (at[1] >> 32 == waiting->n_rankings)
        return;
    at[0] = 0;
    at[1] = (uint64_t)waiting->n_rankings << 32;
}

/* at[0] counts what was seen of the front stack from its top, at[1] of near; above it stands the
 * ranking that they belong to. */
struct live_request *waiting_next(struct waiting *waiting, uint64_t at[2])
{
    waiting_renew(waiting, at);
    while (at[0] < waiting->n_front) {
        struct live_request *r = waiting->front[waiting->n_front - 1 - at[0]++];
        if (r)
            return r;
    }
    for (;;) {
        const size_t i = waiting->near_head + (uint32_t)at[1];
        if (i == waiting->near_tail) {
            if (waiting->n_far == 0)
                return NULL;
            const struct waiter w = far_pop(waiting);
            if (w.r)
                near_insert(waiting, w);
            continue; /* making room may have moved the run */
        }
        at[1]++;
        if (waiting->near[i].r)
            return waiting->near[i].r;
    }
}

/* Everyone of near and far, in near, without holes. */
static size_t gather(struct waiting *waiting)
{
    const size_t n_near = waiting->near_tail - waiting->near_head;
    size_t n = 0;
    memmove(waiting->near, waiting->near + waiting->near_head, n_near * sizeof *waiting->near);
    memcpy(waiting->near + n_near, waiting->far, waiting->n_far * sizeof *waiting->far);
    for (size_t i = 0; i < n_near + waiting->n_far; i++)
        if (waiting->near[i].r)
            waiting->near[n++] = waiting->near[i];
    waiting->near_head = waiting->near_tail = waiting->n_far = waiting->near_left = 0;
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
