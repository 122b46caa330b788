/* Requests of a replica with K/V on its way: to or from another replica, from a tier (tiers.h), or
 * to or from host memory (replica_swap.c).
 *
 *   MOVING, going    the prompt is computed; the blocks stay taken until they have been read
 *   MOVING, coming   the request has left the queue, and has taken blocks for the K/V
 *   LOADED           the K/V is there: the request is in front of the queue until a plan starts it
 *                    (waiting.h)
 *
 * The loop moves the K/V (run/flight_moves.c, flight_tiers.c, flight_swap.c). The lists `handed`,
 * `asked` and `swaps` have the requests that the loop has yet to handle. */
#ifndef SIM_REPLICA_MOVING_H
#define SIM_REPLICA_MOVING_H

#include "replica/live_request.h"

struct moving {
    bool on;                             /* requests may come from other replicas, or go there */
    bool room_awaited;                   /* a request that is swapped out has found no room for its
                                            return in this plan */
    int32_t n, n_blocks;                 /* MOVING requests, and the blocks that they hold */
    int32_t n_coming;                    /* MOVING requests whose K/V comes here */
    int32_t n_loaded, n_loaded_blocks;   /* LOADED requests, and the blocks that they hold */
    int32_t n_before;                    /* coming requests that the next step waits for */
    int32_t n_leaving_blocks;            /* device blocks that are being copied to the host */
    int32_t n_claimed_blocks;            /* of these blocks, those that requests of this plan
                                            already wait for */
    int32_t n_returning, returning_seqs; /* requests and sequences on their way back from the host;
                                            they have seats */
    struct live_request **handed; /* [n_handed] requests whose prompts the ended step completed for
                                     another replica */
    size_t n_handed;
    struct live_request **asked; /* [n_asked] requests whose K/V is to come; n_below 0: no K/V is
                                    needed any more */
    size_t n_asked;
    struct live_request **swaps; /* [n_swaps] requests that a plan has sent to the host, or back,
                                    since the loop last looked */
    size_t n_swaps;
};

/* Makes room for n requests. Returns 0 or IFL_E_NOMEM. Zeroed memory is valid for moving_destroy,
 * and means that no request moves. */
int moving_reserve(struct moving *moving, size_t n);
void moving_destroy(struct moving *moving);
static inline void moving_begin(struct moving *moving, bool on)
{
    moving->on = on;
}

/* Lists r for the loop: r is MOVING to another replica with the K/V that it has computed. */
static inline void moving_hand_over(struct moving *moving, struct live_request *r)
{
    moving->handed[moving->n_handed++] = r;
    moving->n++;
    moving->n_blocks += r->pub.stale.n_blocks;
}
/* Lists r for the loop: r is MOVING and has taken blocks for K/V that is to come. before: the next
 * step waits for this K/V. */
static inline void moving_ask(struct moving *moving, struct live_request *r, bool before)
{
    moving->asked[moving->n_asked++] = r;
    r->loads_before = before;
    moving->n++;
    moving->n_coming++;
    moving->n_blocks += r->pub.stale.n_blocks;
    moving->n_before += before;
}
/* r is MOVING and has taken blocks for K/V that comes from a tier (tiers.h), or in stages from
 * another replica. */
static inline void moving_come(struct moving *moving, struct live_request *r)
{
    r->loads_before = false;
    moving->n++;
    moving->n_coming++;
    moving->n_blocks += r->pub.stale.n_blocks;
}
/* A MOVING request has taken n more blocks for K/V that comes. */
static inline void moving_add_blocks(struct moving *moving, int32_t n)
{
    moving->n_blocks += n;
}
/* r, which decoded, is MOVING to another replica. */
static inline void moving_go(struct moving *moving, struct live_request *r)
{
    r->hands_over = HANDS_REQUEST;
    moving->n++;
    moving->n_blocks += r->pub.stale.n_blocks;
}
/* r is on its way between device and host; its `swaps` says which way. */
static inline void moving_swap(struct moving *moving, struct live_request *r)
{
    ifl_assert(r->pub.state == IFL_MOVING && r->swaps != SWAPS_NOT);
    const bool out = r->swaps == SWAPS_OUT;
    moving->swaps[moving->n_swaps++] = r;
    moving->n++;
    moving->n_blocks += r->pub.stale.n_blocks;
    moving->n_leaving_blocks += out ? r->pub.stale.n_blocks : 0;
    moving->n_returning += !out;
    moving->returning_seqs += out ? 0 : r->pub.n_seqs;
}
/* The copy of r between device and host has ended; r still has its blocks. */
static inline void moving_end_swap(struct moving *moving, struct live_request *r)
{
    ifl_assert(moving->n > 0 && r->pub.state == IFL_MOVING && r->swaps != SWAPS_NOT);
    const bool out = r->swaps == SWAPS_OUT;
    moving->n--;
    moving->n_blocks -= r->pub.stale.n_blocks;
    moving->n_leaving_blocks -= out ? r->pub.stale.n_blocks : 0;
    moving->n_returning -= !out;
    moving->returning_seqs -= out ? 0 : r->pub.n_seqs;
    r->swaps = SWAPS_NOT;
}
static inline void moving_clear_swaps(struct moving *moving)
{
    moving->n_swaps = 0;
}
/* True if requests are on their way between device and host. */
static inline bool moving_swaps(const struct moving *moving)
{
    return moving->n_leaving_blocks > 0 || moving->n_returning > 0;
}
/* A plan begins. */
static inline void moving_open(struct moving *moving)
{
    moving->n_claimed_blocks = 0;
    moving->room_awaited = false;
}
/* Notes that a request has found no room in this plan: requests that come back from the host would
 * take it. */
static inline void moving_await_room(struct moving *moving)
{
    moving->room_awaited = true;
}
/* Claims n of the device blocks that are being copied to the host for a request of this plan.
 * Returns false if fewer than n are unclaimed. With n 0 the request needs only a free block beside
 * its own: at least one must be unclaimed, and it stays so. */
static inline bool moving_claim(struct moving *moving, int32_t n)
{
    if (moving->n_leaving_blocks - moving->n_claimed_blocks < ifl_max(n, 1))
        return false;
    moving->n_claimed_blocks += n;
    return true;
}
/* Lists for the loop that r needs no K/V from another replica. */
static inline void moving_do_without(struct moving *moving, struct live_request *r)
{
    moving->asked[moving->n_asked++] = r;
}
/* r, which is MOVING, is no longer counted as MOVING; it still has its blocks. */
static inline void moving_end(struct moving *moving, struct live_request *r)
{
    ifl_assert(moving->n > 0 && r->pub.state == IFL_MOVING);
    moving->n--;
    moving->n_coming -= !r->hands_over;
    moving->n_blocks -= r->pub.stale.n_blocks;
    moving->n_before -= r->loads_before;
    r->loads_before = false;
}
/* Counts r as LOADED (load) or no longer (unload). */
static inline void moving_load(struct moving *moving, const struct live_request *r)
{
    moving->n_loaded++;
    moving->n_loaded_blocks += r->pub.stale.n_blocks;
}
static inline void moving_unload(struct moving *moving, const struct live_request *r)
{
    ifl_assert(moving->n_loaded > 0);
    moving->n_loaded--;
    moving->n_loaded_blocks -= r->pub.stale.n_blocks;
}
/* Empties the list: the loop has handled all its requests. */
static inline void moving_clear_handed(struct moving *moving)
{
    moving->n_handed = 0;
}
static inline void moving_clear_asked(struct moving *moving)
{
    moving->n_asked = 0;
}
/* r leaves before the loop has looked: takes it off the lists for the loop. */
void moving_forget(struct moving *moving, const struct live_request *r);

#endif
