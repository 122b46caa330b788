/* The waiting queue: requests without blocks, in the order in which they are asked.
 *
 *   front   pushed back by a preemption, last in first out, whatever their rank
 *   near    a sorted run of the best ranked that some plan has already looked at
 *   far     a heap of everyone else, so that long queues cost a plan nothing
 *
 * Who leaves in a plan leaves a hole, so that cursors keep their place until waiting_tidy. */
#ifndef SIM_WAITING_H
#define SIM_WAITING_H

#include "live_request.h"

struct waiter {
    int64_t key, arrival_ns;
    uint64_t serial;
    struct live_request *r;
};

struct waiting {
    struct live_request **front; /* the top, n_front - 1, is asked first */
    size_t n_front;
    struct waiter *near; /* [near_head, near_tail) is sorted */
    size_t near_head, near_tail;
    size_t near_left;   /* where the last one left it */
    struct waiter *far; /* binary heap */
    size_t n_far;
    size_t cap;
    size_t n;         /* requests that wait, holes not counted */
    int64_t n_tokens; /* of theirs */
    bool holes;
    uint32_t n_rankings;               /* times everyone got a new key */
    const struct ifl_request **ranked; /* scratch */
    int64_t *keys;                     /* scratch */
};

/* Room for n requests; 0, or -1 without memory. A zeroed queue is valid and empty. */
int waiting_reserve(struct waiting *waiting, size_t n);
void waiting_destroy(struct waiting *waiting);

/* arrival_ns breaks ties of keys: the request's own, or now to stand behind everyone. */
void waiting_push(struct waiting *waiting, struct live_request *r, int64_t key, int64_t arrival_ns);
void waiting_push_front(struct waiting *waiting, struct live_request *r);
/* r leaves the queue in this plan; it may come back in the same plan. */
void waiting_leave(struct waiting *waiting, const struct live_request *r);
/* Removes holes; between plans. */
void waiting_tidy(struct waiting *waiting);

/* The next request that waits, NULL at the end. `at` starts as {0, 0}. */
struct live_request *waiting_next(struct waiting *waiting, uint64_t at[2]);
/* A cursor from before the last ranking begins anew. */
void waiting_renew(const struct waiting *waiting, uint64_t at[2]);

typedef void waiting_rank_fn(void *context, const struct ifl_request *const *of, size_t n,
                             int64_t *key);
/* Every request gets the key that `rank` gives it now, and cursors begin anew; for orders whose
 * keys change. */
void waiting_rekey(struct waiting *waiting, waiting_rank_fn *rank, void *context);

#endif
