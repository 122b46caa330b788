/* The tiers below the device: look-ups for waiting requests, and blocks of running requests that
 * the tiers store. */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"
#include "replica/kv/identity.h"
#include "replica/step_builder.h"

static int32_t block_tokens(const struct replica *replica)
{
    return replica->fixed.limits.block_tokens;
}

static void begin_prompt(struct replica *replica)
{
    for (int t = 0; t < N_TIERS; t++)
        if (replica->tiers.of[t])
            kv_tier_begin(replica->tiers.of[t]);
}

/* ---- finding ---- */

int32_t replica_given_blocks(const struct replica *replica, const struct live_request *r,
                             const struct kv_tier *tier)
{
    return replica_full_blocks(replica, (int32_t)(tier->rules.hit_frac * r->pub.n_prompt));
}

/* The nearest tier with a unit that ends behind block i and begins within the first n, and that a
 * request loads from; -1: none. */
static int with_unit(const struct replica *replica, int32_t i, int32_t n, uint64_t identity)
{
    for (int t = 0; t < N_TIERS; t++) {
        const struct kv_tier *tier = replica->tiers.of[t];
        if (tier && tier->rules.prefetch == TIER_LOADS_ITSELF &&
            (i + 1) % tier->rules.unit_blocks == 0 && i + 1 - tier->rules.unit_blocks <= n &&
            kv_tier_has(tier, identity))
            return t;
    }
    return -1;
}

static int32_t longest_unit(const struct replica *replica)
{
    int32_t longest = 1;
    for (int t = 0; t < N_TIERS; t++)
        if (replica->tiers.of[t])
            longest = ifl_max(longest, replica->tiers.of[t]->rules.unit_blocks);
    return longest;
}

/* The request has found K/V there, and its load takes time. */
static bool loads_from(const struct replica *replica, const struct live_request *r, int t)
{
    return r->rare->tiers.n_blocks[t] > 0 && replica->tiers.of[t]->rules.linked;
}

/* The first n blocks are there. Finds the units behind them, and counts their blocks by tier;
 * notes: the request is about to load them. Returns how many blocks are there in all. */
static int32_t walk(struct replica *replica, const struct live_request *r, int32_t n, int32_t limit,
                    bool notes, int32_t n_blocks[N_TIERS])
{
    const int32_t longest = longest_unit(replica);
    uint64_t identity = r->identity;
    for (int32_t i = n; i < limit && i < n + longest; i++) {
        identity = kv_identity(r, identity, i, block_tokens(replica));
        const int t = with_unit(replica, i, n, identity);
        if (t < 0)
            continue;
        n_blocks[t] += i + 1 - n;
        n = i + 1;
        if (notes)
            tiers_note_found(&replica->tiers, t, identity);
    }
    return n;
}

/* The tiers from which too little would come are left out, and what lies behind them. */
static bool is_worth_it(const struct replica *replica, const int32_t n_blocks[N_TIERS], int32_t n)
{
    for (int t = 0; t < N_TIERS; t++)
        if (n_blocks[t] > 0 && n * block_tokens(replica) < replica->tiers.of[t]->rules.min_tokens)
            return false;
    return true;
}

/* Of the blocks behind the device's, up to `end`, those that a prefetch for the request has brought
 * to the first tier. */
static int32_t count_prefetched(const struct replica *replica, const struct live_request *r,
                                int32_t end)
{
    const struct kv_tier *host = replica->tiers.of[TIER_HOST];
    uint64_t identity = r->identity;
    int32_t n = 0;
    for (int32_t i = r->n_hit; i < end; i++) {
        identity = kv_identity(r, identity, i, block_tokens(replica));
        if ((i + 1) % host->rules.unit_blocks == 0 &&
            kv_tier_has_for(host, identity, r->pub.serial))
            n += ifl_min(host->rules.unit_blocks, i + 1 - r->n_hit);
    }
    return n;
}

int32_t replica_find_below(struct replica *replica, struct live_request *r, int32_t limit)
{
    struct live_tiers *own = &live_own(r)->tiers;
    const struct kv_tier *outside = replica->tiers.of[TIER_STORE];
    const int32_t n_hit = r->n_hit;
    for (int t = 0; t < N_TIERS; t++)
        own->n_blocks[t] = 0;
    int32_t n = walk(replica, r, n_hit, limit, false, own->n_blocks);
    own->n_prefetched = own->prefetched_from == TIER_HOST ? 0 : count_prefetched(replica, r, n);
    const bool gives = outside && outside->rules.prefetch == TIER_LOADS_ITSELF;
    const int32_t n_given = gives ? ifl_min(replica_given_blocks(replica, r, outside), limit) : 0;
    if (n_given > n) {
        own->n_blocks[TIER_STORE] += n_given - n;
        n = n_given;
    }
    if (!is_worth_it(replica, own->n_blocks, n - n_hit)) {
        for (int t = 0; t < N_TIERS; t++)
            own->n_blocks[t] = 0;
        own->n_prefetched = 0;
        n = n_hit;
    }
    r->n_below = n > n_hit ? n * block_tokens(replica) : 0;
    return n;
}

/* ---- loading ---- */

IFL_APART bool replica_loads_apart(const struct replica *replica, const struct live_request *r)
{
    for (int t = 0; t < N_TIERS; t++)
        if (loads_from(replica, r, t) && replica->tiers.of[t]->rules.loads == TIER_LOADS_APART)
            return true;
    return false;
}

static bool loads_over_link(const struct replica *replica, const struct live_request *r)
{
    for (int t = 0; t < N_TIERS; t++)
        if (loads_from(replica, r, t))
            return true;
    return false;
}

/* Where the blocks are really copied from. */
static void list_loads(struct replica *replica, const struct live_request *r)
{
    const struct kv_tier *tier = replica->tiers.of[TIER_HOST];
    const int32_t end = replica_full_blocks(replica, r->n_below);
    uint64_t identity = r->identity;
    for (int32_t i = r->n_hit, n = i; i < end; i++) {
        identity = kv_identity(r, identity, i, block_tokens(replica));
        if ((i + 1) % tier->rules.unit_blocks != 0)
            continue;
        tiers_list_load(&replica->tiers, tier->places, kv_tier_place(tier, identity), r, n, i + 1);
        n = i + 1;
    }
}

bool replica_note_loads(struct replica *replica, const struct live_request *r)
{
    int32_t n_blocks[N_TIERS] = {0};
    replica->tiers.n_found = 0;
    walk(replica, r, r->n_hit, replica_full_blocks(replica, r->n_below), true, n_blocks);
    return tiers_reserve_ask(&replica->tiers);
}

/* What is found is used now. The blocks that the request has taken may have pushed some of it out
 * of its tier, in any order: it is read before that, and the rest is used all the same. */
static void use(struct replica *replica, const struct live_request *r)
{
    const struct kv_tier *host = replica->tiers.of[TIER_HOST];
    if (host && host->places)
        list_loads(replica, r);
    begin_prompt(replica);
    for (size_t i = 0; i < replica->tiers.n_found; i++) {
        const struct tier_found *found = &replica->tiers.found[i];
        kv_tier_use(replica->tiers.of[found->tier], found->identity);
        if (loads_from(replica, r, found->tier))
            tiers_pin(&replica->tiers, found->tier, found->identity);
    }
}

/* Blocks for the whole prompt are taken with those for what comes, so that a plan which starts the
 * request needs no further ones. */
bool replica_load_below(struct replica *replica, struct live_request *r, int32_t hold_tokens)
{
    ifl_assert(r->pub.state == IFL_WAITING && r->n_below > 0);
    const int32_t least = ifl_max(hold_tokens, r->pub.stale.n_tokens);
    if (!replica_note_loads(replica, r) ||
        !replica_first_blocks(replica, r, replica_hold_blocks(replica, r, least)))
        return false;
    waiting_leave(&replica->here.waiting, r);
    plan_count_off(&replica->plan, IFL_WAITING);
    use(replica, r);
    r->pub.stale.n_computed = replica_cached_tokens(replica, r);
    r->pub.state = IFL_MOVING;
    r->swapped_in = false;
    live_own(r)->tiers.asked_ns = replica->view.now_ns;
    moving_come(&replica->moving, r);
    tiers_ask(&replica->tiers, r, false);
    step_count_blocks(replica);
    replica_stir_keys(replica);
    return true;
}

/* What a prefetch has brought to the first tier for it was found in the other one. */
IFL_APART void replica_note_found(struct replica *replica, struct live_request *r)
{
    struct live_tiers *own = &live_own(r)->tiers;
    const int32_t n_prefetched = own->n_prefetched;
    r->cached_tokens = r->pub.stale.n_computed;
    for (int t = 0; t < N_TIERS; t++)
        own->found_tokens[t] = own->n_blocks[t] * block_tokens(replica);
    own->found_tokens[TIER_HOST] -= n_prefetched * block_tokens(replica);
    own->found_tokens[own->prefetched_from] += n_prefetched * block_tokens(replica);
}

IFL_APART void replica_take_below(struct replica *replica, struct live_request *r)
{
    const int32_t n_cached = replica_cached_tokens(replica, r);
    use(replica, r);
    accounts_add_tokens(&replica->kv, r->n_below - n_cached);
    if (loads_over_link(replica, r))
        tiers_ask(&replica->tiers, r, true);
    r->n_below = 0;
}

void replica_hear_tiers(struct replica *replica, int64_t now_ns)
{
    replica_stir(replica, now_ns);
}

void replica_loaded_below(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    replica_stir(replica, now_ns);
    moving_end(&replica->moving, r);
    accounts_add_tokens(&replica->kv, r->n_below - r->pub.stale.n_computed);
    r->pub.stale.n_computed = r->n_below;
    r->pub.n_prefill = r->pub.stale.n_tokens;
    r->n_below = 0;
    live_own(r)->tiers.exposed_ns += now_ns - r->rare->tiers.asked_ns;
    replica_publish_prompt(replica, r, r->pub.stale.n_computed);
    r->pub.state = IFL_LOADED;
    moving_load(&replica->moving, r);
    waiting_push_loaded(&replica->here.waiting, r);
}

/* ---- storing ---- */

/* The tier stores units that end behind block i of a request whose prompt has n_prompt blocks. */
static bool stores_behind(const struct kv_tier *tier, int32_t i, int32_t n_prompt)
{
    return tier && tier->rules.stores == TIER_STORES_COMPUTED && tier->rules.n_units > 0 &&
           (i + 1) % tier->rules.unit_blocks == 0 && (tier->rules.answers || i < n_prompt);
}

/* The tier gets a further unit with the blocks from n_offered to n. */
static bool grows(const struct kv_tier *tier, int32_t n_offered, int32_t n, int32_t n_prompt)
{
    const int32_t end = tier->rules.answers ? n : ifl_min(n, n_prompt);
    return end / tier->rules.unit_blocks > n_offered / tier->rules.unit_blocks;
}

/* The tier is about to make room for a unit that ends in front of block i: units behind it in the
 * prompt are used first, so that they stay (vLLM, prepare_store: what is asked for is protected).
 */
static void look_ahead(struct replica *replica, const struct live_request *r, struct kv_tier *tier,
                       uint64_t identity, int32_t i, int32_t n, int32_t n_prompt)
{
    kv_tier_mark(tier);
    kv_tier_pass(tier);
    for (; i < n; i++) {
        identity = kv_identity(r, identity, i, block_tokens(replica));
        if (stores_behind(tier, i, n_prompt) && !kv_tier_renew(tier, identity, true))
            kv_tier_pass(tier);
    }
    kv_tier_rewind(tier);
}

/* Units that were offered with an earlier chunk are used again, in tiers that get further ones, so
 * that the beginning of the prompt stays the youngest (vLLM, _get_reqs_to_store: touch of all keys
 * up to the new ones; SGLang: the nodes of the path). LMCache only puts what is new. */
static void renew(struct replica *replica, const struct live_request *r, int32_t n,
                  int32_t n_prompt)
{
    const int32_t n_offered = r->rare->tiers.n_offered;
    uint64_t identity = 0;
    for (int32_t i = 0; i < n_offered; i++) {
        identity = kv_identity(r, identity, i, block_tokens(replica));
        for (int t = 0; t < N_TIERS; t++) {
            struct kv_tier *tier = replica->tiers.of[t];
            if (stores_behind(tier, i, n_prompt) && !tier->rules.begin_older &&
                grows(tier, n_offered, n, n_prompt))
                kv_tier_renew(tier, identity, false);
        }
    }
}

static void offer(struct replica *replica, struct live_request *r, int32_t n, int32_t n_prompt)
{
    struct live_tiers *own = &live_own(r)->tiers;
    bool looked[N_TIERS] = {0};
    if (n <= own->n_offered)
        return;
    begin_prompt(replica);
    renew(replica, r, n, n_prompt);
    for (int32_t i = own->n_offered; i < n; i++) {
        own->identity = kv_identity(r, own->identity, i, block_tokens(replica));
        for (int t = 0; t < N_TIERS; t++) {
            struct kv_tier *tier = replica->tiers.of[t];
            if (!stores_behind(tier, i, n_prompt) ||
                (!looked[t] && kv_tier_renew(tier, own->identity, true)))
                continue;
            if (!looked[t] && kv_tier_is_full(tier)) {
                look_ahead(replica, r, tier, own->identity, i + 1, n, n_prompt);
                looked[t] = true;
            }
            kv_tier_offer(tier, own->identity,
                          tier->places ? r->blocks + i + 1 - tier->rules.unit_blocks : NULL);
        }
    }
    own->n_offered = n;
}

void replica_offer_prompt(struct replica *replica, struct live_request *r, int32_t n_computed)
{
    const int32_t n_prompt = replica_full_blocks(replica, r->pub.n_prompt);
    offer(replica, r, ifl_min(replica_full_blocks(replica, n_computed), n_prompt), n_prompt);
}

void replica_offer_answer(struct replica *replica, struct live_request *r)
{
    if (r->pub.n_seqs == 1)
        offer(replica, r, replica_full_blocks(replica, r->pub.stale.n_computed),
              replica_full_blocks(replica, r->pub.n_prompt));
}

void replica_report_tiers(const struct live_request *r, struct ifl_request_record *record)
{
    record->has_tiers = true;
    for (int t = 0; t < N_TIERS; t++)
        record->tier_tokens[t] = r->rare->tiers.found_tokens[t];
    record->load_ns = r->rare->tiers.load_ns;
    record->load_exposed_ns = r->rare->tiers.exposed_ns;
}
