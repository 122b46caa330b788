/* Beam search on a replica: the tables of kv/beams.h, the pool that their blocks come from and go
 * to, and the accounts. Slots that beams hold without a token yet count as reserved. */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"

static bool full(const struct replica *replica, const struct live_request *r)
{
    return r->pub.stale.n_computed % replica->fixed.limits.block_tokens == 0;
}

/* Tokens in each of the last blocks. */
static int32_t last_tokens(const struct replica *replica, const struct live_request *r)
{
    const int32_t n_blocks = r->rare->beams.n_common + r->rare->beams.n_columns;
    return r->pub.stale.n_computed - (n_blocks - 1) * replica->fixed.limits.block_tokens;
}

int64_t replica_beams_slots(const struct replica *replica, const struct live_request *r)
{
    const int32_t n_last = kv_beams_last(&r->rare->beams);
    return (int64_t)(r->rare->beams.n_used - n_last) * replica->fixed.limits.block_tokens +
           (int64_t)n_last * last_tokens(replica, r);
}

/* Behind the block of the next token each sequence may need blocks of its own. */
int32_t replica_beams_hold(const struct replica *replica, const struct live_request *r,
                           int32_t hold_tokens)
{
    const struct kv_block block = replica->fixed.block;
    const int32_t n_next = r->pub.stale.n_computed + 1;
    if (hold_tokens < n_next)
        return r->rare->beams.n_used;
    const int32_t n_later = kv_blocks_for(hold_tokens, block) - kv_blocks_for(n_next, block);
    return r->rare->beams.n_used + kv_beams_need(&r->rare->beams, full(replica, r)) +
           n_later * r->pub.n_seqs;
}

IFL_APART int replica_beams_begin(struct replica *replica, struct live_request *r)
{
    const struct kv_block block = replica->fixed.block;
    const int32_t n_columns = kv_blocks_for(r->pub.stale.n_computed, block);
    const int32_t n_common = r->parted ? group_shared_blocks(&r->pub, block) : n_columns;
    if (r->parted)
        accounts_add_saved(&replica->kv, -group_saved_blocks(&r->pub, block));
    if (kv_beams_begin(&live_own(r)->beams, r->pub.n_seqs, n_common, n_columns - n_common) < 0)
        return IFL_E_NOMEM;
    accounts_add_saved(&replica->kv, kv_beams_saved(&r->rare->beams));
    r->parted = true;
    return 0;
}

void replica_beams_step(struct replica *replica, struct live_request *r)
{
    ifl_assert(r->rare->beams.n_seqs > 0);
    const bool is_full = full(replica, r);
    struct kv_beams *beams = &live_own(r)->beams;
    accounts_add_saved(&replica->kv, -kv_beams_saved(beams));
    ifl_require(kv_beams_step(beams, is_full) == 0 && beams->n_used <= r->pub.stale.n_blocks);
    accounts_add_saved(&replica->kv, kv_beams_saved(beams));
    for (int32_t place = beams->n_used - beams->n_added; !is_full && place < beams->n_used; place++)
        plan_copy(&replica->plan, r->blocks[kv_beams_copied(beams, place)], r->blocks[place]);
    if (!is_full)
        accounts_add_tokens(&replica->kv, (int64_t)beams->n_added * last_tokens(replica, r));
}

void replica_beams_undo(struct replica *replica, struct live_request *r)
{
    ifl_assert(r->rare->beams.n_seqs > 0);
    const bool was_full = full(replica, r);
    struct kv_beams *beams = &live_own(r)->beams;
    if (!was_full) {
        accounts_add_tokens(&replica->kv, -(int64_t)beams->n_added * last_tokens(replica, r));
        plan_forget_copies_to(&replica->plan, r->blocks + beams->n_used - beams->n_added,
                              beams->n_added);
    }
    accounts_add_saved(&replica->kv, -kv_beams_saved(beams));
    kv_beams_undo(beams, was_full, r->blocks);
    accounts_add_saved(&replica->kv, kv_beams_saved(beams));
}

/* Gives back what is neither used nor promised. */
static void give_back(struct replica *replica, struct live_request *r)
{
    const int32_t keep = ifl_max(r->n_promised, r->rare->beams.n_used);
    if (r->pub.stale.n_blocks <= keep)
        return;
    kv_release(&replica->kv.device, r->pub.stale.n_blocks - keep, r->blocks + keep);
    r->pub.stale.n_blocks = keep;
}

IFL_APART void replica_beams_fork(struct replica *replica, struct live_request *r)
{
    ifl_assert(r->rare->beams.n_seqs > 0);
    int32_t *parents = kv_beams_parents(&live_own(r)->beams);
    const int32_t n_last_tokens = last_tokens(replica, r);
    for (int32_t seq = 0; seq < r->pub.n_seqs; seq++)
        parents[seq] =
            beam_parent(&replica->fixed.beams, r->row, r->pub.stale.n_out, seq, r->pub.n_seqs);
    accounts_add_saved(&replica->kv, -kv_beams_saved(&r->rare->beams));
    const struct kv_beams_lost lost = kv_beams_fork(&live_own(r)->beams, parents, r->blocks);
    accounts_add_saved(&replica->kv, kv_beams_saved(&r->rare->beams));
    const int64_t n_full = (int64_t)(lost.n - lost.n_last) * replica->fixed.limits.block_tokens;
    accounts_add_tokens(&replica->kv, -((int64_t)lost.n_last * n_last_tokens + n_full));
    give_back(replica, r);
}

/* ---- all of the cohort ---- */

/* Blocks that the next token takes from the pool. */
static int32_t missing(const struct replica *replica, struct live_request *r)
{
    cohort_sync(&replica->here.cohort, r);
    const int32_t n =
        replica_beams_hold(replica, r, r->pub.stale.n_computed + 1) - r->pub.stale.n_blocks;
    return ifl_max(n, 0);
}

int32_t replica_growing_beams(const struct replica *replica)
{
    int32_t n = 0;
    if (replica->fixed.beams.search)
        FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
            if (r->pub.forks && r->pub.stale.n_now == 0)
                n += missing(replica, r);
    return n;
}

void replica_step_beams(struct replica *replica)
{
    if (replica->fixed.beams.search)
        FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
            if (r->pub.forks) {
                replica_take_blocks(replica, r, missing(replica, r));
                replica_beams_step(replica, r);
            }
}

IFL_APART void replica_fork_beams(struct replica *replica)
{
    if (replica->fixed.beams.search)
        FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
            if (r->pub.forks) {
                cohort_sync(&replica->here.cohort, r);
                replica_beams_fork(replica, r);
            }
}
