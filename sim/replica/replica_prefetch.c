/* Prefetches: the K/V of waiting requests is moved from a lower tier to the first one before a plan
 * reaches the requests (tiers.h). */
#include <math.h>

#include "inflight/minmax.h"
#include "replica/kv/identity.h"
#include "replica/replica_parts.h"

static int32_t block_tokens(const struct replica *replica)
{
    return replica->fixed.limits.block_tokens;
}

/* The block behind the last of the units that the tier has from ask->from on, in a row. */
static int32_t end_of_units(const struct replica *replica, const struct live_request *r,
                            const struct prefetch_ask *ask, int32_t limit)
{
    const struct kv_tier *tier = replica->tiers.of[ask->tier];
    const int32_t unit = tier->rules.unit_blocks;
    const int32_t n_given = ifl_min(replica_given_blocks(replica, r, tier), limit);
    uint64_t identity = ask->identity;
    int32_t n = ask->from;
    for (int32_t i = ask->from; i < limit && i < n + unit; i++) {
        identity = kv_identity(r, identity, i, block_tokens(replica));
        if ((i + 1) % unit == 0 && i + 1 - unit <= n && kv_tier_has(tier, identity))
            n = i + 1;
    }
    return ifl_max(n, n_given / unit * unit);
}

/* The nearest tier that has some of it. */
static bool find_units(const struct replica *replica, const struct live_request *r,
                       struct prefetch_ask *ask)
{
    const int32_t limit = replica_full_blocks(replica, r->pub.stale.n_tokens - 1);
    for (ask->tier = TIER_HOST + 1; ask->tier < N_TIERS; ask->tier++) {
        const struct kv_tier *tier = replica->tiers.of[ask->tier];
        if (!tier || tier->rules.prefetch == TIER_LOADS_ITSELF ||
            (limit - ask->from) * block_tokens(replica) < tier->rules.prefetch_tokens)
            continue;
        ask->end = end_of_units(replica, r, ask, limit);
        if (ask->end > ask->from)
            return true;
    }
    return false;
}

bool replica_ask_prefetch(struct replica *replica, struct live_request *r, struct prefetch_ask *ask)
{
    replica_look_up(replica, r);
    *ask = (struct prefetch_ask){
        .identity = r->identity,
        .from = ifl_max(r->n_hit, replica_full_blocks(replica, r->n_below)),
    };
    for (int32_t i = r->n_hit; i < ask->from; i++)
        ask->identity = kv_identity(r, ask->identity, i, block_tokens(replica));
    if (!find_units(replica, r, ask))
        return false;
    const int32_t limit = replica_full_blocks(replica, r->pub.stale.n_tokens - 1);
    live_own(r)->tiers.prefetches = true;
    live_own(r)->tiers.prefetched_from = ask->tier;
    live_own(r)->tiers.prefetch_tokens = (limit - ask->from) * block_tokens(replica);
    return true;
}

int32_t replica_take_prefetch(struct replica *replica, const struct live_request *r,
                              struct prefetch_ask *ask, int32_t most_units, int32_t *chain,
                              int32_t *read)
{
    struct kv_tier *host = replica->tiers.of[TIER_HOST], *tier = replica->tiers.of[ask->tier];
    int32_t n_units = 0;
    *chain = TIER_NONE;
    kv_tier_begin(host);
    kv_tier_begin(tier);
    while (n_units < most_units && ask->from < ask->end) {
        ask->identity = kv_identity(r, ask->identity, ask->from, block_tokens(replica));
        if (++ask->from % tier->rules.unit_blocks != 0)
            continue;
        if (!kv_tier_expect(host, ask->identity, r->pub.serial, chain)) {
            ask->end = ask->from;
            break;
        }
        kv_tier_use(tier, ask->identity);
        read[n_units++] = kv_tier_pin(tier, ask->identity);
    }
    return n_units;
}

void replica_end_prefetch(struct live_request *r, int64_t now_ns)
{
    live_own(r)->tiers.prefetches = false;
    if (r->rare->tiers.passed_over)
        live_own(r)->tiers.exposed_ns += now_ns - r->rare->tiers.passed_ns;
}

bool replica_passes_over(const struct replica *replica, struct live_request *r, int64_t *until_ns)
{
    struct live_tiers *own = &live_own(r)->tiers;
    const struct tier_rules *rules = &replica->tiers.of[own->prefetched_from]->rules;
    const int64_t now_ns = replica->view.now_ns;
    *until_ns = IFL_NEVER;
    if (rules->prefetch == TIER_PREFETCH_WAIT || rules->prefetch == TIER_PREFETCH_TIMEOUT) {
        own->passed_ns = own->passed_over ? own->passed_ns : now_ns;
        own->passed_over = true;
    }
    if (rules->prefetch == TIER_PREFETCH_WAIT)
        return true;
    const double patience_ns =
        (double)rules->prefetch_ns + rules->prefetch_token_ns * own->prefetch_tokens;
    if (rules->prefetch == TIER_PREFETCH_TIMEOUT &&
        (double)(now_ns - own->passed_ns) < patience_ns) {
        *until_ns = own->passed_ns + (int64_t)ceil(fmin(patience_ns, (double)IFL_LAST_NS / 2));
        return true;
    }
    replica_end_prefetch(r, now_ns);
    return false;
}
