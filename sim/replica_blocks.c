/* The blocks of a request: what it lacks, how it gets them and gives them back, and the accounts of
 * how the pool is used. */
#include "replica.h"

/* The last token of an answer is never computed, so its K/V needs no slot. */
static int32_t final_slots(const struct live_request *r)
{
    return r->pub.n_prompt + r->n_output - 1;
}

static int64_t unused_slots(const struct replica *replica, const struct live_request *r)
{
    const int64_t held = (int64_t)r->pub.n_blocks * replica->limits.block_tokens;
    const int64_t unused = held - final_slots(r);
    return unused > 0 ? unused : 0;
}

/* A contiguous reservation is rounded up, and cannot grow. */
static bool can_take(const struct replica *replica, const struct live_request *r, int32_t n)
{
    return kv_fits(&replica->kv, n) && !(replica->kv.contiguous && r->pub.n_blocks > 0);
}

int32_t replica_need(const struct replica *replica, const struct live_request *r,
                     int32_t hold_tokens)
{
    const int32_t has = r->pub.state == IFL_SWAPPED ? 0 : r->pub.n_blocks;
    const int32_t more = kv_blocks_for(hold_tokens, replica->limits.block_tokens) - has;
    const int32_t too_many = replica->kv.n_free + 1;
    if (more <= 0 || !replica->kv.contiguous)
        return more > 0 ? more : 0;
    if (has > 0)
        return too_many;
    const int64_t rounded = kv_buddy_rounded(more);
    if (rounded > replica->kv.n_blocks)
        return replica->kv.n_blocks + 1;
    return kv_fits(&replica->kv, more) || rounded > too_many ? (int32_t)rounded : too_many;
}

bool replica_take_blocks(struct replica *replica, struct live_request *r, int32_t n)
{
    if (n == 0)
        return true;
    if (!can_take(replica, r, n) || live_reserve_blocks(r, r->pub.n_blocks + n) < 0)
        return false;
    kv_take(&replica->kv, n, r->blocks + r->pub.n_blocks);
    r->pub.n_blocks += n;
    const int64_t unused = unused_slots(replica, r);
    const int64_t taken = (int64_t)n * replica->limits.block_tokens;
    replica->kv_internal_slots += unused < taken ? unused : taken; /* older ones are counted */
    return true;
}

void replica_drop_blocks(struct replica *replica, struct live_request *r)
{
    replica->kv_internal_slots -= unused_slots(replica, r);
    replica->kv_token_slots -= r->pub.n_computed;
    kv_release(&replica->kv, r->pub.n_blocks, r->blocks);
    r->pub.n_blocks = 0;
}

/* ---- a tick of the cohort ---- */

int32_t replica_growing_blocks(const struct replica *replica)
{
    int32_t n = 0;
    for (const struct live_request *r = cohort_growing(&replica->cohort); r; r = r->grow_next)
        n += cohort_grows(&replica->cohort, r) && r->pub.n_now == 0;
    return n;
}

bool replica_tick_fits(const struct replica *replica, int32_t n_new, int32_t spare_blocks)
{
    return replica->kv.n_free - n_new >= spare_blocks && !(replica->kv.contiguous && n_new > 0);
}

void replica_grow(struct replica *replica)
{
    for (struct live_request *r = cohort_growing(&replica->cohort); r; r = r->grow_next)
        if (cohort_grows(&replica->cohort, r))
            replica_take_blocks(replica, r, 1);
}
