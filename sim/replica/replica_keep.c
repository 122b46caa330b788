/* K/V that requests give up at the end of their prompts, and its blocks (kv/keep.h). K/V that they
 * give up later, token by token, is in the cohort (cohort.h). */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"

/* Slots of a request with n_final tokens in the end. Its prompt of n_prompt tokens has become
 * *kept. The slot of a step's own token is taken before another one is given up. */
static int32_t filled_in_the_end(const struct kept *kept, int32_t n_prompt, int32_t n_final)
{
    const int64_t n = (int64_t)kept->n_slots + n_final - n_prompt;
    return (int32_t)ifl_min(n, (int64_t)kept->most_slots + 1);
}

static int32_t final_tokens(const struct live_request *r)
{
    return r->pub.n_prompt + r->n_output - 1;
}

int32_t replica_keep_final(const struct replica *replica, const struct live_request *r)
{
    if (r->final_slots > 0)
        return r->final_slots;
    const int32_t n_prompt = r->pub.state == IFL_WAITING ? r->pub.stale.n_tokens : r->pub.n_prefill;
    const struct kept kept = keep_of_prompt(&replica->fixed.keep, n_prompt, replica->fixed.block);
    return ifl_max(n_prompt, filled_in_the_end(&kept, n_prompt, final_tokens(r)));
}

void replica_keep_nothing(struct live_request *r)
{
    r->pub.stale.n_dropped = r->n_unread = 0;
    r->most_slots = r->final_slots = 0;
}

/* Where the blocks begin that r gives back, and how many they are. What it holds beyond its prompt
 * was promised to it, and stays. */
static bool give_back(struct replica *replica, struct live_request *r, const struct kept *kept)
{
    const struct keep *keep = &replica->fixed.keep;
    const struct kv_block block = replica->fixed.block;
    const bool holds_sinks = keep->method == KEEP_STREAMING && keep->place == KEEP_IN_PLACE;
    const int32_t at = holds_sinks ? kv_blocks_for(keep->sink_tokens, block) : kept->n_blocks;
    const int32_t n = kv_blocks_for(r->pub.stale.n_computed, block) - kept->n_blocks;
    if (kept->n_slots == r->pub.stale.n_computed)
        return true;
    return replica_cut_blocks(replica, r, ifl_min(at, kept->n_blocks), n);
}

IFL_APART void replica_keep_prompt(struct replica *replica, struct live_request *r)
{
    const int32_t n_prompt = r->pub.stale.n_computed;
    const struct keep all = {.method = KEEP_ALL};
    struct kept kept = keep_of_prompt(&replica->fixed.keep, n_prompt, replica->fixed.block);
    ifl_assert(r->pub.n_seqs == 1 && r->pub.stale.n_dropped == 0);
    replica_count_out(replica, r);
    if (!give_back(replica, r, &kept))
        kept = keep_of_prompt(&all, n_prompt, replica->fixed.block);
    r->pub.stale.n_dropped = n_prompt - kept.n_slots;
    r->n_unread = kept.n_unread;
    r->most_slots = kept.most_slots < INT32_MAX ? kept.most_slots : 0;
    r->final_slots = filled_in_the_end(&kept, n_prompt, final_tokens(r));
    replica_count_in(replica, r);
}
