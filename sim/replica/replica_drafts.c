/* Speculation at a replica: what the draft module says, and steps of a cohort whose members have
 * guesses (ragged.h). */
#include "replica/step_builder.h"

/* ---- what is guessed ---- */

static int32_t ask(struct replica *replica, const struct ifl_request *r)
{
    const struct module *draft = &replica->fixed.modules[IFL_DRAFT];
    const struct ifl_policy *before = replica->plan.answering;
    plan_ask(&replica->plan, IFL_DRAFT);
    plan_set_answering(&replica->plan, draft->policy);
    const int32_t n = draft->policy->ops.draft->ask(draft->self, &replica->view, r);
    plan_set_answering(&replica->plan, before);
    replica_note_said(replica, draft, r->serial, n);
    return n;
}

static int32_t for_all(struct replica *replica)
{
    const struct module *draft = &replica->fixed.modules[IFL_DRAFT];
    const struct ifl_draft_ops *ops = draft->policy->ops.draft;
    if (!ops->for_all)
        return -1;
    plan_ask(&replica->plan, IFL_DRAFT);
    const int32_t n = ops->for_all(draft->self, &replica->view);
    replica_note_said(replica, draft, UINT64_MAX, n);
    return n;
}

int32_t step_drafts(struct ifl_step *step, const struct ifl_request *request)
{
    struct replica *replica = replica_of(step);
    const struct ragged *ragged = &replica->here.cohort.ragged;
    if (!ragged->options.on || request->state != IFL_RUNNING || !request_decodes(request))
        return 0;
    step_sync(replica, live(request));
    return live(request)->ended
               ? 0
               : ragged_cut(ragged, ask(replica, request), request->stale.n_computed);
}

void replica_ask_drafts(struct replica *replica)
{
    const struct live_list *members = &replica->here.cohort.members;
    const int32_t n_all = for_all(replica);
    if (n_all >= 0 && replica->plan.n_members == 0) {
        cohort_set_drafts(&replica->here.cohort, n_all);
        return;
    }
    FOR_EACH_LIVE (r, members, AMONG_PEERS) {
        step_sync(replica, r);
        if (r->pub.stale.n_now == 0)
            cohort_set_draft(&replica->here.cohort, r, n_all >= 0 ? n_all : ask(replica, &r->pub));
    }
}

/* ---- ticks ---- */

int32_t replica_prepare_ragged(const struct replica *replica)
{
    return cohort_prepare((struct cohort *)(uintptr_t)&replica->here.cohort);
}

void replica_grow_ragged(struct replica *replica)
{
    const struct ragged *ragged = &replica->here.cohort.ragged;
    for (size_t i = 0; i < ragged->n && ragged->n_lacking > 0; i++) {
        const struct ragged_member *m = &ragged->of[i];
        const int32_t more = ragged_holds(ragged, m->n_computed, m->n_draft) - m->capacity;
        if (more > 0)
            replica_take_blocks(replica, m->r, kv_blocks_for(more, replica->fixed.block));
    }
}

static int record_gaps(const struct ragged_tick *tick, size_t n_members,
                       struct ifl_recorder *recorder, struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < tick->n_own_gaps && rc == 0; i++)
        rc = ifl_record_gaps(recorder, tick->own_gap_ns[i], 1, error);
    if (rc == 0 && n_members > tick->n_own_gaps)
        rc = ifl_record_gaps(recorder, tick->end_ns - tick->last_end_ns,
                             (int64_t)(n_members - tick->n_own_gaps), error);
    return rc;
}

IFL_HOT int replica_tick_ragged(struct replica *replica, int64_t end_ns,
                                struct ifl_recorder *recorder, struct ifl_error *error)
{
    struct cohort *cohort = &replica->here.cohort;
    struct ragged_tick tick = {.block = cohort->block,
                               .end_ns = end_ns,
                               .n_accepted = replica->in_flight.n_accepted,
                               .own_gap_ns = replica->in_flight.own_gaps_ns};
    cohort_tick_ragged(cohort, &tick);
    in_flight_note_accepted(&replica->in_flight, cohort->ragged.n_step_accepted);
    accounts_add_tokens(&replica->kv, tick.n_emitted - (int64_t)cohort->n);
    return record_gaps(&tick, cohort->n, recorder, error);
}
