/* The tiers below a replica's device (kv/tier.h), and the loads of its requests from them. A load
 * is, by enum tier_load and tier_prefetch,
 *
 *   apart              as in a hand-over (moving.h): the request is MOVING, then LOADED, then a
 *                      plan starts it
 *   before, by layer   the plan starts the request at once; the loop holds the step until all the
 *                      K/V has come, or that of the first layers
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

/* A load that a plan has asked for. */
struct tier_ask {
    struct live_request *r; /* the record may have been reused for another request: compare its
                               serial */
    uint64_t serial;
    size_t row;
    int32_t attempt;
    int32_t n_blocks[N_TIERS];
    bool at_once; /* the request runs in the plan that asked */
    /* range in tiers.copies, if the first tier has places: from blocks of the tier to blocks of the
     * request */
    size_t first_copy, n_copies;
    size_t first_pin, n_pins; /* range in tiers.pins */
};

/* A unit of a tier that a load reads. */
struct tier_pin {
    int tier;
    int32_t slot;
};

/* A unit that a request has found in a tier. */
struct tier_found {
    int tier;
    uint64_t identity;
};

/* K/V to be moved from `tier` to the first tier for a waiting request: blocks from to end - 1 of
 * the request. identity is that of the block before these. */
struct prefetch_ask {
    int tier;
    int32_t from, end;
    uint64_t identity;
};

struct tiers {
    bool on;
    bool prefetches;             /* some tier moves K/V that waiting requests need to the first
                                    tier */
    struct kv_tier *of[N_TIERS]; /* borrowed; NULL: there is none */
    struct tier_ask *asked;      /* [n_asked] since the loop last looked */
    size_t n_asked, cap_asked;
    uint64_t opened;         /* tiers_changes when the plan began */
    struct ifl_copy *copies; /* [n_copies] copies of the loads in `asked`, and of the load to be
                                asked for next */
    size_t n_copies, cap_copies, n_copies_asked;
    struct tier_pin *pins; /* [n_pins] as copies */
    size_t n_pins, cap_pins, n_pins_asked;
    struct tier_found *found; /* [n_found] what the request to be started next loads */
    size_t n_found, cap_found;
};

/* Counts the changes of what can be found in the tiers. */
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

/* True if the tiers have changed since the plan began: a waiting request may have been shown K/V
 * that has been evicted since, or less than there is now. */
static inline bool tiers_changed_in_plan(const struct tiers *tiers)
{
    return IFL_RARE(tiers->on) && tiers->opened != tiers_changes(tiers);
}

/* Makes room for one more entry of `asked`. Returns false if memory is short. */
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
                             .n_copies = tiers->n_copies - tiers->n_copies_asked,
                             .first_pin = tiers->n_pins_asked,
                             .n_pins = tiers->n_pins - tiers->n_pins_asked};
    tiers->n_copies_asked = tiers->n_copies;
    tiers->n_pins_asked = tiers->n_pins;
    for (int i = 0; i < N_TIERS; i++)
        ask->n_blocks[i] = r->rare->tiers.n_blocks[i];
}

static inline void tiers_clear_asked(struct tiers *tiers)
{
    tiers->n_asked = 0;
    tiers->n_copies = tiers->n_copies_asked = 0;
    tiers->n_pins = tiers->n_pins_asked = 0;
}

/* Lists copies for blocks n to end - 1 of r, which are the last blocks of that place of the tier.
 */
void tiers_list_load(struct tiers *tiers, struct tier_places *places, int32_t place,
                     const struct live_request *r, int32_t n, int32_t end);
/* The request to be started next loads the unit of that tier. */
void tiers_note_found(struct tiers *tiers, int tier, uint64_t identity);
/* The load to be asked for next reads the unit of that tier, if the tier has it. */
void tiers_pin(struct tiers *tiers, int tier, uint64_t identity);
void tiers_destroy(struct tiers *tiers);

#endif
