/* Promises of plans that are made ahead (limits->plans_ahead). Such a plan is not shown a request
 * that arrives during the step in front of it, and sees a request that ends with that step as
 * running. Neither event therefore changes the next plan, if the batching module reads no more than
 * it is shown (`shown_alone`): the promise stays valid for this plan. */
#include "replica/replica_parts.h"

#include "replica/step_builder.h"

/* No module but the batching module is asked, and all that it is shown decodes in the cohort, apart
 * from n_ended requests. */
static bool all_decode(const struct replica *replica, size_t n_ended)
{
    const struct here *here = &replica->here;
    return here->cohort.n > 0 && here->waiting.n + here->n_swapped == 0 && here->apart.n == n_ended;
}

static bool sees_what_is_shown(const struct replica *replica)
{
    return replica->fixed.overlap.hindsight &&
           replica->fixed.modules[IFL_BATCHING].policy->shown_alone;
}

/* The next plan is made without a request that arrives at at_ns, and no hook was called for it. */
static bool comes_unseen(const struct replica *replica, int64_t at_ns)
{
    return sees_what_is_shown(replica) && replica->view.n_tries == 0 &&
           at_ns > replica->in_flight.desc.start_ns && replica->on.join.n == 0 &&
           !replica->on.has_ahead && !replica->kv.device.cache.asks_wanted &&
           all_decode(replica, 0);
}

void replica_promise_arrived(struct replica *replica, int64_t at_ns)
{
    const bool unseen = replica->plan.promise.n_steps > 0 && comes_unseen(replica, at_ns);
    plan_cut_promise(&replica->plan, unseen ? 1 : 0);
}

/* ---- a plan that is shown no request ---- */

/* All that wait have arrived since the step began that the next plan is made beside. */
static bool hides_all_that_wait(struct replica *replica)
{
    enum { MOST_LOOKS = 4 }; /* of a longer queue one is shown, mostly */
    struct waiting *waiting = &replica->here.waiting;
    const struct live_request *r;
    uint64_t at[2] = {0, 0};
    if (waiting->n == 0 || waiting->n > MOST_LOOKS)
        return false;
    do
        r = waiting_next(waiting, at);
    while (r && r->joined_ns > replica->in_flight.desc.start_ns);
    return !r;
}

bool replica_skip_blind_plan(struct replica *replica)
{
    const struct here *here = &replica->here;
    if (!IFL_RARE(replica->fixed.overlap.hindsight) || here->running.n + here->n_swapped > 0 ||
        replica->view.n_tries > 0 || !sees_what_is_shown(replica) || replica->on.has_ahead ||
        replica->tiers.on || replica->moving.n_loaded > 0 || replica_overlaps(replica) ||
        !hides_all_that_wait(replica))
        return false;
    view_try(&replica->view);
    return true;
}

/* ---- a promise that outlives an end ---- */

IFL_HOT bool replica_promise_ended(const struct replica *replica)
{
    const struct plan *plan = &replica->plan;
    if (!plan->promise.to_the_last)
        return false;
    return IFL_RARE(plan->plans_ahead)
               ? plan->ready_all && sees_what_is_shown(replica) && !replica->on.has_ahead &&
                     all_decode(replica, replica->leaving.n_ended)
               : all_decode(replica, 0);
}
