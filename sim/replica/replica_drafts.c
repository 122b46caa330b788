/* Speculation at a replica: questions to the draft module, and steps of a cohort with guesses
 * (ragged.h). */
#include "replica/step_builder.h"

#include <stdio.h>

#include "replica/step_limits.h"

/* ---- what is guessed ---- */

/* The answer, if it makes sense; else 0, and a breach of the contract. */
static int32_t check_answer(struct replica *replica, int32_t n)
{
    if (!IFL_RARE(n < 0 || n > replica->fixed.limits.max_drafts))
        return n;
    char what[96];
    snprintf(what, sizeof what,
             "to how many tokens are guessed, expected 0 to the %d of its `most`",
             replica->fixed.limits.max_drafts);
    step_breach_answer(replica, replica->fixed.modules[IFL_DRAFT].policy, n, what);
    return 0;
}

static int32_t ask_anew(struct replica *replica, const struct ifl_request *r)
{
    const struct module *draft = &replica->fixed.modules[IFL_DRAFT];
    const struct ifl_policy *before = plan_call(&replica->plan, draft->policy);
    const bool answered = replica->plan.answering;
    if (IFL_RARE(answered && before == draft->policy)) {
        plan_return(&replica->plan, before);
        step_breach(replica, step_no_question);
        return 0;
    }
    plan_ask(&replica->plan, IFL_DRAFT);
    plan_set_answering(&replica->plan, true);
    const uint64_t print = replica_print(replica, &r, 1);
    const int32_t n = draft->policy->ops.draft->ask(draft->self, &replica->view, r);
    replica_compare(replica, draft, print, &r, 1);
    plan_set_answering(&replica->plan, answered);
    plan_return(&replica->plan, before);
    replica_note_said(replica, draft, r->serial, n);
    return check_answer(replica, n);
}

/* A plan is told what is guessed, and then gives tokens for it: it is asked for once a plan. */
static int32_t ask(struct replica *replica, const struct ifl_request *r)
{
    struct live_rare *own = live_own(live(r));
    if (own->draft_asked_in != replica->plan.n_begun) {
        own->n_asked_draft = ask_anew(replica, r);
        own->draft_asked_in = replica->plan.n_begun;
    }
    return own->n_asked_draft;
}

static int32_t ask_for_all(struct replica *replica)
{
    const struct module *draft = &replica->fixed.modules[IFL_DRAFT];
    const struct ifl_policy *before = plan_call(&replica->plan, draft->policy);
    plan_ask(&replica->plan, IFL_DRAFT);
    const int32_t n = draft->policy->ops.draft->for_all(draft->self, &replica->view);
    plan_return(&replica->plan, before);
    replica_note_said(replica, draft, UINT64_MAX, n);
    return n < 0 ? -1 : check_answer(replica, n);
}

static int32_t for_all(struct replica *replica)
{
    if (!replica->fixed.modules[IFL_DRAFT].policy->ops.draft->for_all)
        return -1;
    if (replica->plan.draft_asked_in != replica->plan.n_begun)
        plan_keep_draft(&replica->plan, ask_for_all(replica));
    return replica->plan.n_asked_draft;
}

int32_t step_drafts(struct ifl_step *step, const struct ifl_request *request)
{
    struct replica *replica = replica_of(step);
    const struct ragged *ragged = &replica->here.cohort.ragged;
    if (!step_knows(replica, request) || !ragged->options.on || request->state != IFL_RUNNING ||
        !request_decodes(request))
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
    size_t at = 0, i;
    while (ragged->n_lacking > 0 && (i = ragged_next_lacking(ragged, &at)) < ragged->n)
        replica_take_blocks(replica, cohort_turn_to(&replica->here.cohort, i),
                            ragged->of[i].n_lacking);
}

IFL_HOT void replica_emit(struct replica *replica)
{
    struct cohort *cohort = &replica->here.cohort;
    const int64_t n = cohort_emit(cohort, replica->in_flight.n_accepted);
    in_flight_note_accepted(&replica->in_flight, cohort->ragged.n_step_accepted);
    accounts_add_tokens(&replica->kv, n - (int64_t)cohort->n);
}
