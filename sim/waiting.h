/* The waiting queue: requests without blocks, in the order in which they are asked.
 *
 *   front   pushed back by a preemption, last in first out, whatever their rank
 *   near    the best ranked, sorted: whom some plan has looked at, and who goes before one of them
 *   line    of the others, those who came in the order of their ranks, sorted so: first come, first
 *           served, that is everyone. In a long one they stand as arrivals, without a record, until
 *           a plan comes to look: a record is large, and long since out of the caches by then
 *   heap    the rest, so that long queues cost a plan nothing
 *
 * An entry counts as long as its request still has the ticket that the entry was written with. Who
 * leaves, or is ranked anew, leaves a hole behind: near keeps its holes until waiting_tidy, so that
 * cursors keep their place in a plan, line and heap until they come to the head. */
#ifndef SIM_WAITING_H
#define SIM_WAITING_H

#include "live_request.h"

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
    struct arrival *undescribed; /* [undescribed_head, undescribed_tail): those in line without a
                                    record, in its order */
    size_t undescribed_head, undescribed_tail;
    struct waiter *heap; /* binary */
    size_t n_heap;
    struct live_pool *pool; /* borrowed, with room for records of everyone */
    size_t cap;
    uint64_t n_tickets;                /* given out so far */
    size_t n;                          /* requests that wait, holes not counted */
    int64_t n_tokens;                  /* of theirs */
    bool holes;                        /* somebody has left since the last waiting_tidy */
    size_t n_near_holes;               /* at most */
    uint32_t n_rankings;               /* times everyone got a new key */
    bool moves;                        /* keys change within a plan: cursors note what they show */
    uint32_t n_cursors;                /* that have noted something in this plan */
    uint64_t n_plans;                  /* so far */
    const struct ifl_request **ranked; /* scratch */
    int64_t *keys;                     /* scratch */
};

/* Room for n requests; 0, or -1 without memory. A zeroed queue is valid and empty; the pool must be
 * set before somebody lines up. */
int waiting_reserve(struct waiting *waiting, size_t n);
void waiting_destroy(struct waiting *waiting);

/* arrival_ns breaks ties of keys: the request's own, or now to stand behind everyone. */
void waiting_push(struct waiting *waiting, struct live_request *r, int64_t key, int64_t arrival_ns);
/* In a queue that is not short the request lines up without a record, which it gets when it is
 * looked at. False, and it does not wait yet: others that came before go behind it. */
bool waiting_line_up(struct waiting *waiting, const struct arrival *arrival, int64_t key);
void waiting_push_front(struct waiting *waiting, struct live_request *r);
/* r leaves the queue in this plan; it may come back in the same plan. */
void waiting_leave(struct waiting *waiting, struct live_request *r);
/* So many records stay in the caches anyway. */
static inline bool waiting_is_short(const struct waiting *waiting)
{
    return waiting->n < 64;
}
static inline size_t waiting_undescribed(const struct waiting *waiting)
{
    return waiting->undescribed_tail - waiting->undescribed_head;
}
/* Between plans: r, which waits, has another key. Who was pushed to the front stays there. */
void waiting_rerank(struct waiting *waiting, struct live_request *r, int64_t key,
                    int64_t arrival_ns);
/* Between plans: holes do not become more than a fraction of near. */
void waiting_fill_holes(struct waiting *waiting);
static inline void waiting_tidy(struct waiting *waiting)
{
    if (waiting->holes)
        waiting_fill_holes(waiting);
}

/* at[0] counts what was seen of the front stack from its top, at[1] of near. Above at[1] stands the
 * ranking that they belong to, above at[0] the cursor's number where keys move, from 1. A cursor
 * from before the last ranking begins anew, and passes over what it has shown. */
static inline void waiting_renew(const struct waiting *waiting, uint64_t at[2])
{
    if (at[1] >> 32 == waiting->n_rankings)
        return;
    at[0] = at[0] >> 32 << 32;
    at[1] = (uint64_t)waiting->n_rankings << 32;
}

/* Requests are noted for that many cursors of a plan; what others have shown they may show again.
 */
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
    if (waiting->moves)
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

/* Each request that waits by its rank and has a record, with the key that it was put in with. */
typedef void key_fn(void *context, struct live_request *r, int64_t key);
void waiting_each(const struct waiting *waiting, key_fn *see, void *context);

typedef void waiting_rank_fn(void *context, const struct ifl_request *const *of, size_t n,
                             int64_t *key);
/* Every request gets the key that `rank` gives it now, and cursors begin anew; for orders whose
 * keys change. It takes a look at each request; beyond that, only those that have another place
 * cost. */
void waiting_rekey(struct waiting *waiting, waiting_rank_fn *rank, void *context);

#endif
