/* The waiting queue: requests without blocks, in the order in which plans consider them.
 *
 *   front   LOADED requests, first in first out; behind them the requests that a preemption pushed
 *           back, last in first out, whatever their rank
 *   near    the best ranked requests, sorted: those that a plan has looked at, and those that rank
 *           before one of these
 *   line    of the other requests, those that arrived in the order of their ranks, sorted; with
 *           first come, first served every request does. In a long queue these requests are kept as
 *           arrivals, without a record, until a plan looks at them: a record is large, and would
 *           have left the caches by then
 *   heap    the rest, so that long queues cost a plan nothing
 *
 * An entry is valid while its request has the ticket that the entry was written with. A request
 * that leaves, or is ranked anew, leaves a hole behind. Holes of near stay until waiting_tidy, so
 * that cursors keep their place in a plan. Holes of line and heap stay until they come to the
 * head. */
#ifndef SIM_REPLICA_WAITING_H
#define SIM_REPLICA_WAITING_H

#include "inflight/error.h"

#include "replica/kv/block.h"
#include "replica/live_request.h"

struct waiter {
    int64_t key, arrival_ns;
    uint64_t serial, ticket;
    struct live_request *r; /* NULL: the request has no record */
};

struct waiter_run {
    struct waiter *of; /* [head, tail) is sorted */
    size_t head, tail;
};

struct waiting {
    struct waiter *front; /* the top, n_front - 1, is asked first */
    size_t n_front;
    struct waiter_run near, line;
    struct arrival *undescribed; /* [undescribed_head, undescribed_tail): the requests in line
                                    without a record, in its order */
    size_t undescribed_head, undescribed_tail;
    struct waiter *heap; /* binary */
    size_t n_heap;
    struct live_pool *pool; /* borrowed, with room for a record of every request */
    size_t cap;
    uint64_t n_tickets;     /* given out so far */
    size_t n;               /* requests that wait, holes not counted */
    int64_t n_tokens;       /* sum of their n_tokens */
    int32_t longest_tokens; /* no waiting request has more tokens; may stem from a request that has
                               left */
    int64_t n_blocks;       /* sum of the blocks that the tokens of these requests fill or begin */
    struct kv_block block;
    bool holes;          /* a request has left since the last waiting_tidy */
    size_t n_near_holes; /* upper bound of the number of holes in near */
    uint32_t n_rankings; /* times that all requests got new keys */
    bool moves;          /* keys change within a plan: cursors note what they show */
    uint32_t n_cursors;  /* cursors of this plan that note what they show */
    uint64_t n_plans;    /* plans so far */
    /* Requests and keys of the last ranking, for the entries [asked_from, asked_to) of line;
     * entries that have left line since are included. asked_to 0: line has moved since, and nothing
     * is known. */
    const struct ifl_request **asked;
    int64_t *keys;
    size_t asked_from, asked_to;
    int64_t *fresh_keys; /* scratch */
};

enum { WAITING_SHORT = 64 };

/* Makes room for n requests. Returns 0 or IFL_E_NOMEM. A zeroed queue is valid and empty. Before
 * waiting_line_up is called, `pool` must be set and there must be room for more than WAITING_SHORT.
 */
int waiting_reserve(struct waiting *waiting, size_t n);
void waiting_destroy(struct waiting *waiting);
static inline void waiting_draw_from(struct waiting *waiting, struct live_pool *pool)
{
    waiting->pool = pool;
}
/* Sets the block size by which n_blocks counts. Call it before the first request joins. */
static inline void waiting_set_block(struct waiting *waiting, struct kv_block block)
{
    waiting->block = block;
}
/* moves: keys change within a plan. */
static inline void waiting_set_moves(struct waiting *waiting, bool moves)
{
    waiting->moves = moves;
}

/* Adds r to the queue. arrival_ns breaks ties of keys: it is the arrival of the request, or the
 * present time, so that r waits behind all requests with the same key. */
void waiting_push(struct waiting *waiting, struct live_request *r, int64_t key, int64_t arrival_ns);
/* Adds a request in line, without a record; it gets a record when a plan looks at it. This pays off
 * in a queue that is not short. Returns false, and changes nothing, if the request ranks before a
 * request that is already near or in line: it then needs a record (waiting_push). */
bool waiting_line_up(struct waiting *waiting, const struct arrival *arrival, int64_t key);
/* Adds r in front of all requests that are not LOADED. */
void waiting_push_front(struct waiting *waiting, struct live_request *r);
/* Adds r, which is LOADED, in front of all requests that are not LOADED and behind those that are.
 */
void waiting_push_loaded(struct waiting *waiting, struct live_request *r);
/* Returns the next LOADED request, or NULL at the end. *at must be 0 for the first call. */
struct live_request *waiting_next_loaded(const struct waiting *waiting, uint64_t *at);
/* Returns the number of waiting requests that were preempted before. Examines each request that has
 * a record. */
size_t waiting_count_preempted(const struct waiting *waiting);
/* r leaves the queue in this plan; it may come back in the same plan. */
void waiting_leave(struct waiting *waiting, struct live_request *r);
/* r, which waits, gets one more token: that of a step which was in flight when r was preempted. */
void waiting_add_token(struct waiting *waiting, const struct live_request *r);
/* The records of a short queue stay in the caches, so that each request may have one at once. */
static inline bool waiting_is_short(const struct waiting *waiting)
{
    return waiting->n < WAITING_SHORT;
}
static inline size_t waiting_undescribed(const struct waiting *waiting)
{
    return waiting->undescribed_tail - waiting->undescribed_head;
}
/* Gives the waiting request r another key. Call it between plans. A request that was pushed to the
 * front stays there. */
void waiting_rerank(struct waiting *waiting, struct live_request *r, int64_t key,
                    int64_t arrival_ns);
/* Removes holes, so that they stay a small part of near. Call it between plans. */
void waiting_fill_holes(struct waiting *waiting);
static inline void waiting_tidy(struct waiting *waiting)
{
    if (waiting->holes)
        waiting_fill_holes(waiting);
}

/* Layout of a cursor:
 *
 *   at[0]  low half: entries of front that the cursor has passed, from the top
 *          high half: the cursor's number, from 1 on, if keys change within a plan
 *   at[1]  low half: entries of near that the cursor has passed
 *          high half: n_rankings at that time
 *
 * A cursor from before the last ranking begins anew, and passes over the requests that it has
 * shown. */
static inline void waiting_renew(const struct waiting *waiting, uint64_t at[2])
{
    if (at[1] >> 32 == waiting->n_rankings)
        return;
    at[0] = at[0] >> 32 << 32;
    at[1] = (uint64_t)waiting->n_rankings << 32;
}

/* The largest number of cursors of a plan that note what they have shown. Further cursors may show
 * a request twice. */
enum { WAITING_MOST_CURSORS = 64 };

/* Call it when a plan begins: forgets what cursors have shown. */
static inline void waiting_open(struct waiting *waiting)
{
    waiting->n_plans++;
    waiting->n_cursors = 0;
}
/* Notes that the cursor has shown r. */
void waiting_note_shown(struct waiting *waiting, uint64_t at[2], struct live_request *r);
static inline void waiting_shown(struct waiting *waiting, uint64_t at[2], struct live_request *r)
{
    if (IFL_RARE(waiting->moves))
        waiting_note_shown(waiting, at, r);
}

/* Returns the next waiting request, or NULL at the end. `at` must be {0, 0} for the first call. */
struct live_request *waiting_look(struct waiting *waiting, uint64_t at[2]);
static inline struct live_request *waiting_next(struct waiting *waiting, uint64_t at[2])
{
    waiting_renew(waiting, at);
    const struct waiter_run *near = &waiting->near, *line = &waiting->line;
    const bool near_seen = near->head + (uint32_t)at[1] == near->tail;
    const bool none_far = line->head == line->tail && waiting->n_heap == 0;
    const bool all_seen = (uint32_t)at[0] >= waiting->n_front && near_seen && none_far;
    return all_seen ? NULL : waiting_look(waiting, at);
}

/* Calls `see` for each request that waits in rank order (not in front) and has a record, with the
 * key of its entry. */
typedef void key_fn(void *context, struct live_request *r, int64_t key);
void waiting_each(const struct waiting *waiting, key_fn *see, void *context);

typedef void waiting_rank_fn(void *context, const struct ifl_request *const *of, size_t n,
                             int64_t *key);
/* Gives every request, except those in front, the key that `rank` computes now; cursors begin anew.
 * For orders whose keys change. Requests without a record get one. Computing the keys and comparing
 * them with the last ones is O(n); all other work is only for requests that have joined, left, or
 * got another key. */
void waiting_rekey(struct waiting *waiting, waiting_rank_fn *rank, void *context);

#endif
