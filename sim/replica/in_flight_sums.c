/* The totals of a step, for executors and reports. */
#include "replica/in_flight.h"
#include "replica/replica_parts.h"

/* Attention kernels are tabulated at multiples of that many tokens of context. */
enum { KV_TILE_TOKENS = 64 };

static void add_prompt(struct ifl_step_totals *totals, const struct planned *p)
{
    const struct live_request *r = p->r;
    const int32_t n = p->n;
    const int64_t q = n, kv = r->pub.stale.n_computed;
    totals->n_tokens += p->n_tokens - p->n_draft;
    totals->n_prefill_tokens += p->n_tokens - p->n_draft;
    totals->padding.n_draft_tokens += p->n_draft;
    totals->n_prefill_seqs++;
    totals->n_sampled += r->pub.stale.n_computed + n == r->pub.stale.n_tokens;
    totals->prefill_q_kv += q * kv;
    totals->prefill_q_q += q * q;
    totals->prefill_kv_64 += (kv + KV_TILE_TOKENS - 1) / KV_TILE_TOKENS * KV_TILE_TOKENS;
    if (kv + q > totals->max_prefill_kv)
        totals->max_prefill_kv = (int32_t)(kv + q);
}

IFL_APART void in_flight_note_full(struct step_sums_of *sums, int32_t n)
{
    sums->totals->n_full_seqs = sums->record->full_seqs = n;
    sums->record->kv_given_up_tokens = n;
}

/* What the end of the prompt costs where K/V is given up. */
IFL_APART static void add_kept(const struct replica *replica, const struct planned *p,
                               struct step_sums_of *sums)
{
    const struct live_request *r = p->r;
    const int32_t n_computed = r->pub.stale.n_computed + p->n;
    if (n_computed < r->pub.stale.n_tokens || r->pub.stale.n_out + 1 == r->n_output)
        return;
    const struct kept kept = keep_of_prompt(&replica->fixed.keep, n_computed, replica->fixed.block);
    sums->totals->n_slots_kept += kept.n_moved;
    sums->totals->n_keys_voted += kept.n_voted;
    sums->record->kv_given_up_tokens += n_computed - kept.n_slots;
}

/* A decode beside the cohort. */
static void add_decode(struct ifl_step_totals *totals, const struct planned *p)
{
    const int32_t n_seqs = p->r->pub.n_seqs;
    totals->n_tokens += p->n_tokens;
    totals->n_decode_seqs += n_seqs;
    totals->n_sampled += n_seqs;
    totals->decode_context += (int64_t)n_seqs * (p->r->pub.stale.n_computed + 1);
}

/* Where no request may give up K/V all of this stays 0. */
IFL_APART static void sum_kept(const struct replica *replica, struct step_sums_of *sums)
{
    in_flight_note_full(sums, replica->in_flight.ticks ? replica->here.cohort.n_full_seqs : 0);
    sums->totals->n_slots_kept = sums->totals->n_keys_voted = 0;
    for (size_t i = 0; i < replica->plan.n_planned; i++)
        add_kept(replica, &replica->plan.planned[i], sums);
    sums->record->kv_kept_slots = sums->totals->n_slots_kept;
}

/* Beside what the batching module says: tokens for requests that have ended. */
IFL_APART static void pad_for_ended(const struct plan *plan, struct ifl_padding *padding)
{
    padding->n_decode_seqs += plan->for_ended.n_decode_seqs;
    padding->decode_context += plan->for_ended.decode_context;
}

/* Guesses of the cohort, verified beside its tokens. */
void in_flight_add_guesses(const struct replica *replica, struct ifl_step_totals *totals)
{
    const struct ragged *ragged = &replica->here.cohort.ragged;
    (void)replica_prepare_ragged(replica);
    totals->n_draft_tokens = ragged->n_draft_tokens;
    totals->n_draft_seqs = ragged->n_draft_seqs;
    totals->max_drafts = ragged->most_drafts;
    totals->n_tokens += ragged->n_draft_tokens;
    totals->n_sampled += ragged->n_draft_tokens;
    totals->decode_context += ragged->n_draft_tokens;
}

static void sum_totals(const struct replica *replica, struct ifl_step_totals *totals)
{
    const int32_t n_decode = replica->in_flight.ticks ? replica->here.cohort.n_seqs : 0;
    totals->n_tokens = totals->n_decode_seqs = totals->n_sampled = n_decode;
    totals->decode_context = n_decode ? replica->here.cohort.context + n_decode : 0;
    totals->n_prefill_tokens = totals->n_prefill_seqs = totals->max_prefill_kv = 0;
    totals->prefill_q_kv = totals->prefill_q_q = totals->prefill_kv_64 = 0;
    totals->n_blocks_out = (int32_t)replica->plan.n_outs;
    totals->n_blocks_in = (int32_t)replica->plan.n_ins;
    totals->n_blocks_copied = (int32_t)replica->plan.n_copies;
    totals->padding = replica->plan.padding;
    if (IFL_RARE(replica->plan.pads_for_ended))
        pad_for_ended(&replica->plan, &totals->padding);
    for (size_t i = 0; i < replica->plan.n_planned; i++)
        if (IFL_RARE(replica->plan.planned[i].decodes))
            add_decode(totals, &replica->plan.planned[i]);
        else
            add_prompt(totals, &replica->plan.planned[i]);
}

/* Which adapters the step's sequences have, in the order of the step. */
IFL_APART static void sum_adapters(struct replica *replica, struct ifl_adapter_totals *totals)
{
    struct adapters *adapters = &replica->adapters;
    adapters_open_step(adapters, totals);
    if (replica->in_flight.ticks)
        FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
            adapters_add(adapters, r->pub.adapter, r->pub.n_seqs, totals);
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        const struct planned *p = &replica->plan.planned[i];
        adapters_add(adapters, p->r->pub.adapter, p->n_tokens, totals);
    }
    adapters_close_step(adapters, totals);
}

/* What stays 0 in plain replicas. */
IFL_APART static void sum_extras(struct replica *replica, struct step_sums_of *sums)
{
    struct ifl_step_totals *totals = sums->totals;
    totals->n_draft_tokens = totals->n_draft_seqs = totals->max_drafts = 0;
    if (replica->fixed.speculation.on && totals->n_decode_seqs > 0)
        in_flight_add_guesses(replica, totals);
    if (replica->fixed.gives_up)
        sum_kept(replica, sums);
    if (replica->adapters.fixed.n > 0)
        sum_adapters(replica, &totals->adapters);
}

void in_flight_sum(struct replica *replica, struct step_sums_of *sums)
{
    sum_totals(replica, sums->totals);
    if (IFL_RARE(!replica->fixed.plain))
        sum_extras(replica, sums);
}
