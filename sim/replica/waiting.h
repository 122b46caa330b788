/* The waiting queue: requests without blocks, in the order in which plans consider them.
 *
 *   front   requests that are LOADED, first in first out; those that a preemption pushed back, last
 *           in first out, whatever their rank
 *   near    the best ranked requests, sorted: those that a plan has looked at, and those that rank
 *           before one of these
 *   line    of the others, those that arrived in the order of their ranks, sorted; with first come,
 *           first served that is every request. In a long queue they are kept as arrivals, without
 *           a record, until a plan looks at them: a record is large, and would be out of the caches
 *           by then
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
    struct live_request *r; /* NULL: without a record */
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
    int32_t longest_tokens; /* none of them has more, nor had one that has left */
    int64_t n_blocks;       /* sum of the blocks that these fill or begin */
    struct kv_block block;
    bool holes;          /* a request has left since the last waiting_tidy */
    size_t n_near_holes; /* at most */
    uint32_t n_rankings; /* times that all requests got new keys */
    bool moves;          /* keys change within a plan: cursors note what they show */
    uint32_t n_cursors;  /* of this plan that note what they show */
    uint64_t n_plans;    /* so far */
    /* The last ranking's questions and answers, for the entries [asked_from, asked_to) of line:
     * those that have left line since count, too. asked_to 0: line has moved since. */
    const struct ifl_request **asked;
    int64_t *keys;
    size_t asked_from, asked_to;
    int64_t *fresh_keys; /* scratch */
};

enum { WAITING_SHORT = 64 };

/* Room for n requests; 0 or IFL_E_NOMEM. A zeroed queue is valid and empty; `pool` must be set, and
 * there must be room for more than WAITING_SHORT, before waiting_line_up is called. */
int waiting_reserve(struct waiting *waiting, size_t n);
void waiting_destroy(struct waiting *waiting);
static inline void waiting_draw_from(struct waiting *waiting, struct live_pool *pool)
{
    waiting->pool = pool;
}
/* What n_blocks counts; before the first request comes. */
static inline void waiting_set_block(struct waiting *waiting, struct kv_block block)
{
    waiting->block = block;
}
/* moves: keys change within a plan. */
static inline void waiting_set_moves(struct waiting *waiting, bool moves)
{
    waiting->moves = moves;
}

/* arrival_ns breaks ties of keys: the request's own, or the present time to wait behind all
 * requests with the same key. */
void waiting_push(struct waiting *waiting, struct live_request *r, int64_t key, int64_t arrival_ns);
/* Pays off in a queue that is not short. The request waits in line without a record; it gets one
 * when a plan looks at it. False, and nothing has changed: it ranks before a request that is
 * already near or in line, so it needs a record (waiting_push). */
bool waiting_line_up(struct waiting *waiting, const struct arrival *arrival, int64_t key);
/* r stands in front of all requests that are not LOADED. */
void waiting_push_front(struct waiting *waiting, struct live_request *r);
/* r, which is LOADED, stands in front of all requests that are not, and behind those that are. */
void waiting_push_loaded(struct waiting *waiting, struct live_request *r);
/* The next request that is LOADED; *at starts as 0. */
struct live_request *waiting_next_loaded(const struct waiting *waiting, uint64_t *at);
/* Requests that wait and were preempted before. Costs a look at each that has a record. */
size_t waiting_count_preempted(const struct waiting *waiting);
/* r leaves the queue in this plan; it may come back in the same plan. */
void waiting_leave(struct waiting *waiting, struct live_request *r);
/* r, which waits, gets one token more: that of a step that was in flight as it gave way. */
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
/* Between plans: the waiting request r gets another key. A request that was pushed to the front
 * stays there. */
void waiting_rerank(struct waiting *waiting, struct live_request *r, int64_t key,
                    int64_t arrival_ns);
/* Between plans: removes holes, so that they stay a fraction of near. */
void waiting_fill_holes(struct waiting *waiting);
static inline void waiting_tidy(struct waiting *waiting)
{
    if (waiting->holes)
        waiting_fill_holes(waiting);
}

/* Layout of a cursor:
 *
 *   at[0]  low half: entries of front that it has seen, from the top
 *          high half: the cursor's number from 1, where keys move
 *   at[1]  low half: entries of near that it has seen
 *          high half: n_rankings as of then
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

/* Most cursors of a plan that note what they have shown. Further ones may show a request again. */
enum { WAITING_MOST_CURSORS = 64 };

/* A new plan: what cursors have shown is forgotten. */
static inline void waiting_open(struct waiting *waiting)
{
    waiting->n_plans++;
    waiting->n_cursors = 0;
}
/* The cursor has shown r. */
void waiting_note_shown(struct waiting *waiting, uint64_t at[2], struct live_request *r);
static inline void waiting_shown(struct waiting *waiting, uint64_t at[2], struct live_request *r)
{
    if (IFL_RARE(waiting->moves))
        waiting_note_shown(waiting, at, r);
}

/* The next request that waits, NULL at the end. `at` starts as {0, 0}. */
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

/* Calls `see` for each request that waits by its rank and has a record, with the key of its
 * entry. */
typedef void key_fn(void *context, struct live_request *r, int64_t key);
void waiting_each(const struct waiting *waiting, key_fn *see, void *context);

typedef void waiting_rank_fn(void *context, const struct ifl_request *const *of, size_t n,
                             int64_t *key);
/* Gives every request the key that `rank` computes now, but for those pushed to the front; cursors
 * begin anew. For orders with keys that change. Requests without a record get one. Asking for the
 * keys and comparing them with the last ones is O(n); all else costs only the requests that have
 * come, have left, or have another key. */
void waiting_rekey(struct waiting *waiting, waiting_rank_fn *rank, void *context);

#endif
