/* Requests of a replica with K/V on its way: to or from another replica, from a tier (tiers.h), or
 * to or from host memory (replica_swap.c).
 *
 *   MOVING, going    the prompt is computed; the blocks stay taken until they have been read
 *   MOVING, coming   the request has left the queue, and has taken blocks for the K/V
 *   LOADED           the K/V is there: the request is in front of the queue until a plan starts it
 *                    (waiting.h)
 *
 * The loop moves the K/V (run/flight_moves.c, flight_tiers.c, flight_swap.c). The lists `handed`,
 * `asked` and `swaps` have the requests that it has yet to handle. */
#ifndef SIM_REPLICA_MOVING_H
#define SIM_REPLICA_MOVING_H

#include "replica/live_request.h"

struct moving {
    bool on;                             /* requests may come from other replicas, or go there */
    bool room_awaited;                   /* a request of this plan has found no room */
    int32_t n, n_blocks;                 /* MOVING, and what they hold */
    int32_t n_coming;                    /* of these */
    int32_t n_loaded, n_loaded_blocks;   /* LOADED */
    int32_t n_before;                    /* coming, before the next step begins */
    int32_t n_leaving_blocks;            /* of those on their way to the host */
    int32_t n_claimed_blocks;            /* of these, that requests of this plan wait for */
    int32_t n_returning, returning_seqs; /* on their way back; they have seats */
    struct live_request **handed; /* [n_handed] prompts that the step which has ended completed */
    size_t n_handed;
    struct live_request **asked; /* [n_asked] coming, or with n_below 0 no longer wanted */
    size_t n_asked;
    struct live_request **swaps; /* [n_swaps] that a plan has sent to the host, or back, since the
                                    loop looked */
    size_t n_swaps;
};

/* Room for n requests; 0 or IFL_E_NOMEM. Zeroed memory is valid for moving_destroy, and off. */
int moving_reserve(struct moving *moving, size_t n);
void moving_destroy(struct moving *moving);
static inline void moving_begin(struct moving *moving, bool on)
{
    moving->on = on;
}

/* r goes elsewhere with what it has computed. */
static inline void moving_hand_over(struct moving *moving, struct live_request *r)
{
    moving->handed[moving->n_handed++] = r;
    moving->n++;
    moving->n_blocks += r->pub.stale.n_blocks;
}
/* Lists r for the loop: it has taken blocks for K/V that is to come. before: the next step waits
 * for it. */
static inline void moving_ask(struct moving *moving, struct live_request *r, bool before)
{
    moving->asked[moving->n_asked++] = r;
    r->loads_before = before;
    moving->n++;
    moving->n_coming++;
    moving->n_blocks += r->pub.stale.n_blocks;
    moving->n_before += before;
}
/* r has taken blocks for what comes from a tier (tiers.h), or from another replica in stages. */
static inline void moving_come(struct moving *moving, struct live_request *r)
{
    r->loads_before = false;
    moving->n++;
    moving->n_coming++;
    moving->n_blocks += r->pub.stale.n_blocks;
}
/* r has taken n blocks more for what comes. */
static inline void moving_add_blocks(struct moving *moving, int32_t n)
{
    moving->n_blocks += n;
}
/* r, which decoded, goes elsewhere. */
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
/* It has come there; it still has its blocks. */
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
/* Some requests are on their way between device and host. */
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
/* A request of this plan has found no room: others that come back would take it. */
static inline void moving_await_room(struct moving *moving)
{
    moving->room_awaited = true;
}
/* True: n blocks are on their way to the host that no other request of this plan waits for. With
 * n 0 there is one, which stays for others: the request only asks for a free block beside its own.
 */
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
/* r, which is MOVING, is so no longer; it still has its blocks. */
static inline void moving_end(struct moving *moving, struct live_request *r)
{
    ifl_assert(moving->n > 0 && r->pub.state == IFL_MOVING);
    moving->n--;
    moving->n_coming -= !r->hands_over;
    moving->n_blocks -= r->pub.stale.n_blocks;
    moving->n_before -= r->loads_before;
    r->loads_before = false;
}
/* r is LOADED from now on, or no longer. */
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
/* The loop has handled all requests of the list. */
static inline void moving_clear_handed(struct moving *moving)
{
    moving->n_handed = 0;
}
static inline void moving_clear_asked(struct moving *moving)
{
    moving->n_asked = 0;
}
/* r leaves before the loop has looked. */
void moving_forget(struct moving *moving, const struct live_request *r);

#endif
