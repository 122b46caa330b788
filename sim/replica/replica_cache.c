/* Looks up waiting requests in the prefix cache, and publishes blocks of running ones there.
 *
 * Hits are not kept up to date: a waiting request is looked up when a plan looks at it, and again
 * only after the cache's epoch has changed. Blocks that only their own request can find are
 * published when the request gives them up, because it looks for them only after that. */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"
#include "replica/kv/identity.h"

static bool is_tree(const struct replica *replica)
{
    return replica->kv.device.cache.options.kind == PREFIX_CACHE_RADIX;
}

/* ---- looking up ---- */

/* True if some of the tokens of r may have been computed already: by another request, or by r
 * before a preemption. */
static bool may_hit(const struct live_request *r)
{
    return r->pub.n_preempted > 0 || kv_shareable_tokens(r) > 0;
}

/* One token is always computed, to sample from. */
int32_t replica_longest_hit(const struct replica *replica, const struct live_request *r)
{
    return replica->kv.device.cached && may_hit(r)
               ? replica_full_blocks(replica, r->pub.stale.n_tokens - 1)
               : 0;
}

void replica_find_hit(struct replica *replica, struct live_request *r)
{
    ifl_assert(replica->kv.device.cached && r->pub.state == IFL_WAITING);
    struct kv_cache *cache = &replica->kv.device.cache;
    const int32_t limit = replica_longest_hit(replica, r);
    int32_t n = 0;
    uint64_t identity = 0;
    for (int32_t block; n < limit; n++) {
        const uint64_t next = kv_identity(r, identity, n, replica->fixed.limits.block_tokens);
        if ((block = kv_cache_find(cache, next)) < 0 || live_reserve_blocks(r, n + 1) < 0)
            break;
        r->blocks[n] = (uint32_t)block;
        kv_cache_ask(cache, (uint32_t)block);
        identity = next;
    }
    r->n_hit = n;
    r->identity = identity;
    r->looked_up = replica_cache_epoch(replica);
    if (replica->tiers.on)
        n = replica_find_below(replica, r, replica_full_blocks(replica, r->pub.stale.n_tokens - 1));
    r->pub.stale.n_computed = r->n_below > 0 && !replica->tiers.on
                                  ? r->pub.stale.n_tokens - 1
                                  : n * replica->fixed.limits.block_tokens;
}

IFL_APART void replica_mark_wanted(struct replica *replica)
{
    ifl_assert(replica->kv.device.cached);
    struct kv_cache *cache = &replica->kv.device.cache;
    struct live_request *r;
    uint64_t at[2] = {0, 0};
    kv_cache_want_none(cache);
    while ((r = waiting_next(&replica->here.waiting, at))) {
        replica_look_up(replica, r);
        for (int32_t i = 0; i < r->n_hit; i++)
            kv_cache_want(cache, r->blocks[i]);
    }
}

/* Tokens by which the prompt under way that shares most with r will extend a hit of n_cached
 * tokens. */
static int32_t soon(const struct replica *replica, const struct live_request *r, int32_t n_cached)
{
    const int32_t block_tokens = replica->fixed.limits.block_tokens;
    int32_t longest = n_cached;
    FOR_EACH_LIVE (q, &replica->here.apart, AMONG_PEERS) {
        int32_t n = kv_common_tokens(&r->pub, &q->pub);
        n = n < r->pub.stale.n_tokens ? n : r->pub.stale.n_tokens - 1;
        n -= n % block_tokens;
        if (n > longest && !request_decodes(&q->pub))
            longest = n;
    }
    return longest - n_cached;
}

struct ifl_hit replica_hit(struct replica *replica, const struct live_request *r)
{
    const struct kv_cache *cache = &replica->kv.device.cache;
    const int32_t block_tokens = replica->fixed.limits.block_tokens;
    const int32_t limit = replica_longest_hit(replica, r);
    const bool known = replica->kv.device.cached && r->looked_up == replica_cache_epoch(replica);
    struct ifl_hit hit = {0};
    uint64_t identity = 0;
    int32_t n = known ? r->n_hit : 0, last = n > 0 ? (int32_t)r->blocks[n - 1] : -1;
    for (int32_t block; !known && n < limit; n++, last = block) {
        identity = kv_identity(r, identity, n, block_tokens);
        if ((block = kv_cache_find(cache, identity)) < 0)
            break;
    }
    hit.n_cached = n * block_tokens;
    hit.n_soon = limit > 0 ? soon(replica, r, hit.n_cached) : 0;
    hit.node = is_tree(replica) ? (uint32_t)(last + 1) : 0;
    return hit;
}

int32_t replica_hit_tokens(const struct replica *replica, const struct live_request *r)
{
    const int32_t block_tokens = replica->fixed.limits.block_tokens;
    const int32_t limit = replica_longest_hit(replica, r);
    uint64_t identity = 0;
    int32_t n = 0;
    for (; n < limit; n++) {
        identity = kv_identity(r, identity, n, block_tokens);
        if (kv_cache_find(&replica->kv.device.cache, identity) < 0)
            break;
    }
    return n * block_tokens;
}

/* ---- sharing and publishing ---- */

/* The block gets one more owner; its slots are counted once. */
static void share(struct replica *replica, uint32_t block, uint64_t use)
{
    if (kv_refs(&replica->kv.device, block) == 0)
        accounts_add_tokens(&replica->kv, replica->fixed.limits.block_tokens);
    kv_share(&replica->kv.device, block);
    kv_cache_touch(&replica->kv.device.cache, block, use);
}

IFL_APART void replica_share_hit(struct replica *replica, struct live_request *r)
{
    ifl_assert(replica->kv.device.cached && r->pub.state == IFL_WAITING && r->n_hit > 0);
    struct kv_cache *cache = &replica->kv.device.cache;
    const uint64_t use = kv_cache_tick(cache);
    for (int32_t i = 0; i < r->n_hit; i++) {
        share(replica, r->blocks[i], use);
        if (!is_tree(replica))
            kv_cache_count_use(cache, r->blocks[i]);
    }
    kv_cache_end_node(cache, r->blocks[r->n_hit - 1]);
    r->pub.stale.n_blocks = r->n_published = r->n_names = r->n_hit;
}

/* The tree holds a block once: a request that has computed it again gives back its own and shares
 * the one that is there. */
static void merge(struct replica *replica, struct live_request *r, uint32_t found)
{
    struct kv_pool *kv = &replica->kv.device;
    uint32_t *own = &r->blocks[r->n_names++];
    share(replica, found, kv->cache.clock);
    accounts_add_tokens(&replica->kv, -replica->fixed.limits.block_tokens);
    if (kv->tallied) {
        kv_release_tallied(kv, 1, 0, 0, NULL);
    } else {
        kv_cache_touch(&kv->cache, *own, kv->cache.clock);
        kv_release(kv, 1, own);
    }
    *own = found;
}

/* The name of the next block, or run of blocks, that r publishes. */
static uint32_t next_name(struct replica *replica, struct live_request *r)
{
    if (replica->kv.device.tallied)
        r->blocks[r->n_names] = kv_name(&replica->kv.device);
    return r->blocks[r->n_names++];
}

static int32_t last_name(const struct live_request *r)
{
    return r->n_names > 0 ? (int32_t)r->blocks[r->n_names - 1] : -1;
}

/* True if one entry may stand for blocks that no request can look for: they need no numbers, and
 * the evict module would rank all alike. A tree ranks a node as one. */
static bool makes_runs(const struct replica *replica)
{
    const struct ifl_evict_ops *evict = &replica->fixed.evict;
    return replica->kv.device.tallied &&
           (is_tree(replica) || evict->ignores_depth || evict->by_last_use);
}

/* Publishes blocks that no request can look for, as a run if that may be; or none of them, since r
 * gives them up now (joins_runs). */
static void publish_rest(struct replica *replica, struct live_request *r, int32_t from, int32_t to)
{
    if (replica->kv.device.cache.joins_runs)
        return;
    const int32_t step = makes_runs(replica) ? to - from : 1;
    for (int32_t i = from; i < to; i += step) {
        const int32_t before = last_name(r);
        kv_cache_publish_run(&replica->kv.device.cache, next_name(replica, r), step, before,
                             (i + step) * replica->fixed.limits.block_tokens);
    }
}

/* Gives each published block of r a name of its own, where one stood for several. Goes from the
 * last name to the first, since the names spread within the same array. */
static void divide_runs(struct replica *replica, struct live_request *r)
{
    const struct kv_cache *cache = &replica->kv.device.cache;
    int32_t to = r->n_published;
    if (r->n_names == r->n_published || live_reserve_blocks(r, r->n_published) < 0 ||
        kv_reserve_names(&replica->kv.device, r->n_published - r->n_names) < 0)
        return;
    for (int32_t i = r->n_names; i-- > 0;) {
        const uint32_t name = r->blocks[i];
        const int32_t n = kv_entry_blocks(kv_entry(cache, name));
        r->blocks[--to] = name;
        for (int32_t k = 1; k < n; k++)
            r->blocks[--to] = kv_name(&replica->kv.device);
        kv_cache_divide(&replica->kv.device.cache, name, r->blocks + to);
    }
    r->n_names = r->n_published;
}

/* Publishes the blocks up to the n-th, which requests may look for. True if the last of them was
 * there already. */
static bool publish_sought(struct replica *replica, struct live_request *r, int32_t n,
                           int32_t n_shareable)
{
    struct kv_cache *cache = &replica->kv.device.cache;
    const int32_t block_tokens = replica->fixed.limits.block_tokens;
    bool merged = false;
    for (int32_t i = r->n_published; i < n; i++) {
        r->identity = kv_identity(r, r->identity, i, block_tokens);
        const int32_t found = is_tree(replica) ? kv_cache_find(cache, r->identity) : -1;
        const int32_t before = last_name(r);
        if (found >= 0) {
            merge(replica, r, (uint32_t)found);
        } else {
            if (merged)
                kv_cache_end_node(cache, (uint32_t)before);
            kv_cache_publish(cache, next_name(replica, r), r->identity, before,
                             (i + 1) * block_tokens,
                             i < n_shareable ? KV_SOUGHT_BY_ALL : KV_SOUGHT_BY_ITS_OWN);
        }
        merged = found >= 0;
    }
    return merged;
}

/* Publishes the blocks of the first n_tokens tokens of r. In a tree the blocks on the path to the
 * new ones count as used now, too, and a node ends where a prompt parts from what is there. Blocks
 * that only r can look for are listed if of_its_own says that it may. */
static void publish(struct replica *replica, struct live_request *r, int32_t n_tokens,
                    enum kv_seekers of_its_own)
{
    struct kv_cache *cache = &replica->kv.device.cache;
    const int32_t n = replica_full_blocks(replica, n_tokens);
    if (n <= r->n_published || r->pub.stale.n_dropped + r->n_unread > 0)
        return;
    const int32_t n_shareable = replica_full_blocks(replica, kv_shareable_tokens(r));
    const int32_t n_sought = of_its_own == KV_SOUGHT_BY_NONE ? ifl_min(n, n_shareable) : n;
    const int32_t n_first = ifl_max(r->n_published, n_sought);
    const int32_t n_named = makes_runs(replica) ? n_first + 1 : n;
    if (live_reserve_blocks(r, n_named) < 0 ||
        kv_reserve_names(&replica->kv.device, n_named - r->n_published) < 0)
        return;
    if (is_tree(replica))
        kv_cache_tick(cache);
    for (int32_t i = 0; is_tree(replica) && i < r->n_names; i++)
        kv_cache_touch(cache, r->blocks[i], cache->clock);
    const bool merged = publish_sought(replica, r, n_sought, n_shareable);
    if (merged)
        kv_cache_end_node(cache, (uint32_t)last_name(r));
    publish_rest(replica, r, n_first, n);
    if (r->n_names > 0)
        kv_cache_end_node(cache, (uint32_t)last_name(r));
    r->n_published = n;
}

/* Tokens that can be found. Of a group this is the prompt alone, because its answers differ. */
static int32_t findable_tokens(const struct live_request *r, int32_t n_computed)
{
    return r->pub.n_seqs > 1 ? ifl_min(n_computed, r->pub.n_prompt) : n_computed;
}

static enum kv_seekers own_seeker(const struct live_request *r)
{
    return r->pub.n_preempted > 0 ? KV_SOUGHT_BY_ITS_OWN : KV_SOUGHT_BY_NONE;
}

/* In a tree a use is an insertion other than that of a chunk (SGLang, _inc_hit_count). */
static void count_insertion(struct replica *replica, const struct live_request *r)
{
    for (int32_t i = 0; is_tree(replica) && i < r->n_names; i++)
        kv_cache_count_use(&replica->kv.device.cache, r->blocks[i]);
}

/* Generated tokens are published only when the request ends: a turn that repeats them arrives
 * later. */
static int32_t shareable_of_prompt(const struct live_request *r)
{
    const int32_t n = kv_shareable_tokens(r);
    return ifl_min(n, r->pub.n_prompt);
}

/* A tree grows with every chunk (SGLang, cache_unfinished_req), and by an answer when it has
 * ended. */
IFL_APART static void publish_prompt(struct replica *replica, struct live_request *r,
                                     int32_t n_computed)
{
    const int32_t n_shareable = shareable_of_prompt(r), n = findable_tokens(r, n_computed);
    publish(replica, r, is_tree(replica) ? n : ifl_min(n, n_shareable), own_seeker(r));
    if (request_decodes(&r->pub) && r->pub.stale.n_out + 1 < r->n_output)
        count_insertion(replica, r);
}

void replica_publish_prompt(struct replica *replica, struct live_request *r, int32_t n_computed)
{
    if (replica->kv.device.cached)
        publish_prompt(replica, r, n_computed);
}

/* Blocks can be found as soon as they are scheduled: vLLM's allocate_slots hashes what it allocates
 * for. */
void replica_publish_plan(struct replica *replica, struct live_request *r, int32_t n_computed)
{
    if (replica->kv.device.cache.options.publish == KV_PUBLISH_SCHEDULED && !is_tree(replica))
        replica_publish_prompt(replica, r, n_computed);
}

void replica_withdraw(struct replica *replica, struct live_request *r)
{
    const int32_t n_full = replica_full_blocks(replica, r->pub.stale.n_computed);
    for (; r->n_published > n_full; r->n_published--)
        kv_withdraw(&replica->kv.device, r->blocks[--r->n_names]);
}

bool replica_stands_on(const struct replica *replica, const struct live_request *r,
                       const struct live_request *other)
{
    const int32_t n_full = replica_full_blocks(replica, other->pub.stale.n_computed);
    return r != other && r->pub.state == IFL_RUNNING &&
           r->pub.start_serial >= replica->plan.first_start && r->n_hit > n_full &&
           other->n_published > n_full && r->blocks[n_full] == other->blocks[n_full];
}

/* Lists all that r has published, block by block: r itself will look for it. */
static void list_all(struct replica *replica, struct live_request *r)
{
    struct kv_cache *cache = &replica->kv.device.cache;
    divide_runs(replica, r);
    uint64_t identity = 0;
    for (int32_t i = 0; i < r->n_published && i < r->n_names; i++) {
        identity = kv_identity(r, identity, i, replica->fixed.limits.block_tokens);
        kv_cache_list(cache, r->blocks[i], identity);
    }
    r->identity = identity;
}

/* Blocks without a name hold nothing to be found. In tallied pools they have no numbers. */
static void touch_rest(struct replica *replica, const struct live_request *r)
{
    struct kv_cache *cache = &replica->kv.device.cache;
    const int32_t n = replica->kv.device.tallied ? 0 : r->pub.stale.n_blocks;
    for (int32_t i = r->n_names; i < n; i++)
        kv_cache_touch(cache, r->blocks[i], cache->clock);
}

/* Names that others share come first: they have the beginning of the prompt in common. */
void replica_unpublish(struct replica *replica, struct live_request *r)
{
    struct kv_pool *kv = &replica->kv.device;
    ifl_assert(kv->cached && !is_tree(replica));
    while (r->n_names > 0 && kv_refs(kv, r->blocks[r->n_names - 1]) == 1) {
        const uint32_t name = r->blocks[--r->n_names];
        r->n_published -= kv_entry_blocks(kv_entry(&kv->cache, name));
        kv_withdraw(kv, name);
    }
    kv_cache_tick(&kv->cache);
    for (int32_t i = 0; i < r->n_names; i++)
        kv_cache_touch(&kv->cache, r->blocks[i], kv->cache.clock);
    touch_rest(replica, r);
}

/* A request that finishes leaves all that it has computed. So does a preempted one, but not in a
 * tree: its generated tokens were not inserted yet, and are freed (SGLang's retraction). */
IFL_APART void replica_leave_in_cache(struct replica *replica, struct live_request *r,
                                      bool finished)
{
    ifl_assert(replica->kv.device.cached);
    struct kv_cache *cache = &replica->kv.device.cache;
    if (!finished)
        list_all(replica, r);
    if (!is_tree(replica) || finished) {
        publish(replica, r, findable_tokens(r, r->pub.stale.n_computed),
                finished ? own_seeker(r) : KV_SOUGHT_BY_ITS_OWN);
        count_insertion(replica, r);
        kv_cache_tick(cache);
        for (int32_t i = 0; i < r->n_names; i++)
            kv_cache_touch(cache, r->blocks[i], cache->clock);
    }
    if (finished && replica->tiers.on)
        replica_offer_answer(replica, r);
    touch_rest(replica, r);
}
