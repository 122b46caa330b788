/* The tiers below a replica's device (kv/tier.h), and the loads of its requests from them. A load
 * is, by enum tier_load and tier_prefetch,
 *
 *   apart              as in a hand-over (moving.h): the request is MOVING, then LOADED, then a
 *                      plan starts it
 *   before, by layer   the plan starts the request at once; the loop holds the step until the K/V
 *                      has come that must be there first
 *   without a link     the plan starts the request at once, and no step waits
 *   prefetched         from the request's arrival on its K/V is moved to the first tier, and from
 *                      there as above
 *
 * The loop moves the K/V (run/flight_tiers.c, run/flight_prefetch.c). */
#ifndef SIM_REPLICA_TIERS_H
#define SIM_REPLICA_TIERS_H

#include <stddef.h>

#include "base/array.h"
#include "replica/kv/tier.h"
#include "replica/live_request.h"

/* What a plan has asked for. */
struct tier_ask {
    struct live_request *r; /* another request by now if it has another serial */
    uint64_t serial;
    size_t row;
    int32_t attempt;
    int32_t n_blocks[N_TIERS];
    bool at_once; /* it runs in the plan that asked */
    /* of tiers.copies, where the first tier has places: its blocks, to those of the request */
    size_t first_copy, n_copies;
};

/* What is to come from that tier to the first one for a waiting request: its blocks from - end - 1.
 * identity: of the block before these. */
struct prefetch_ask {
    int tier;
    int32_t from, end;
    uint64_t identity;
};

struct tiers {
    bool on;
    bool prefetches;             /* some tiers send to the first one what waiting requests need */
    struct kv_tier *of[N_TIERS]; /* borrowed; NULL: there is none */
    struct tier_ask *asked;      /* [n_asked] since the loop last looked */
    size_t n_asked, cap_asked;
    uint64_t opened;         /* what had changed when the plan began */
    struct ifl_copy *copies; /* [n_copies] that loads of `asked` are, and those of the next one */
    size_t n_copies, cap_copies, n_copies_asked;
};

/* What can be found in them has changed so often. */
static inline uint64_t tiers_changes(const struct tiers *tiers)
{
    uint64_t n = 0;
    for (int i = 0; i < N_TIERS; i++)
        n += tiers->of[i] ? tiers->of[i]->n_changes : 0;
    return n;
}

static inline void tiers_begin(struct tiers *tiers, struct kv_tier *const of[N_TIERS])
{
    for (int i = 0; i < N_TIERS; i++) {
        tiers->of[i] = of[i];
        tiers->on = tiers->on || of[i];
        tiers->prefetches |= of[i] && of[i]->rules.prefetch != TIER_LOADS_ITSELF;
    }
}

static inline void tiers_open(struct tiers *tiers)
{
    tiers->opened = IFL_RARE(tiers->on) ? tiers_changes(tiers) : 0;
}

/* A waiting request may have been told of K/V that is there no longer, or of less. */
static inline bool tiers_changed_in_plan(const struct tiers *tiers)
{
    return IFL_RARE(tiers->on) && tiers->opened != tiers_changes(tiers);
}

/* Room for one more. False without memory. */
bool tiers_reserve_ask(struct tiers *tiers);

static inline void tiers_ask(struct tiers *tiers, struct live_request *r, bool at_once)
{
    struct tier_ask *ask = &tiers->asked[tiers->n_asked++];
    *ask = (struct tier_ask){.r = r,
                             .serial = r->pub.serial,
                             .row = r->row,
                             .attempt = r->attempt,
                             .at_once = at_once,
                             .first_copy = tiers->n_copies_asked,
                             .n_copies = tiers->n_copies - tiers->n_copies_asked};
    tiers->n_copies_asked = tiers->n_copies;
    for (int i = 0; i < N_TIERS; i++)
        ask->n_blocks[i] = r->rare->tiers.n_blocks[i];
}

static inline void tiers_clear_asked(struct tiers *tiers)
{
    tiers->n_asked = 0;
    tiers->n_copies = tiers->n_copies_asked = 0;
}

/* Blocks n to end - 1 of r come from that place of the tier, which ends with them. */
void tiers_list_load(struct tiers *tiers, struct tier_places *places, int32_t place,
                     const struct live_request *r, int32_t n, int32_t end);
void tiers_destroy(struct tiers *tiers);

#endif
