/* The step that a policy builds: the table of functions behind `struct ifl_step_ops`, and the short
 * ones among them. The others:
 *
 *   step_schedule.c  give tokens
 *   step_start.c     start requests
 *   step_preempt.c   take requests off the device or out of the queue
 *   step_lists.c     show lists
 *
 * Everything here happens within one plan. A refusal changes nothing. Only the first breach of the
 * contract is recorded. From then on every question and every change is refused, until the plan
 * returns and the run ends. */
#include "replica/step_builder.h"

#include <stdio.h>

#include "inflight/random.h"

#include "replica/step_limits.h"
#include "replica/step_lists.h"

void step_breach_by(struct replica *replica, const struct ifl_policy *by, const char *what)
{
    struct ifl_error error;
    if (replica->plan.broken)
        return;
    ifl_fail(&error, IFL_E_POLICY, "%s policy %s broke its contract in step %llu at %.9f s: %s",
             module_kind_name(by->kind), by->name, (unsigned long long)replica->view.step,
             ifl_s_from_ns(replica->view.now_ns), what);
    plan_break(&replica->plan, &error);
}

void step_breach_answer(struct replica *replica, const struct ifl_policy *by, long long answer,
                        const char *what)
{
    char text[256];
    snprintf(text, sizeof text, "it answers %lld %s", answer, what);
    step_breach_by(replica, by, text);
}

const struct ifl_policy *step_actor(const struct replica *replica)
{
    const struct plan *plan = &replica->plan;
    return plan->called ? plan->called : plan->ahead ? plan->ahead : step_planner(replica);
}

void step_breach(struct replica *replica, const char *what)
{
    step_breach_by(replica, step_actor(replica), what);
}

const char step_stranger[] = "it names a request of another replica, or a copy of a request";

bool step_breach_stranger(struct replica *replica)
{
    step_breach(replica, step_stranger);
    return false;
}

void step_breach_change(struct replica *replica)
{
    step_breach(replica, replica->plan.called
                             ? "it changes the step, which only `plan` of a batching module does"
                             : "it changes the step in `ahead` by more than preempting requests "
                               "and bringing swapped ones back");
}

IFL_HOT static int32_t op_need(struct ifl_step *step, const struct ifl_request *r,
                               int32_t hold_tokens)
{
    if (!step_knows(replica_of(step), r))
        return 0;
    step_sync(replica_of(step), live(r));
    replica_look_up(replica_of(step), live(r));
    return replica_need(replica_of(step), live(r), ifl_max(hold_tokens, 0));
}

static uint64_t op_draw(struct ifl_step *step, const struct ifl_request *r, uint32_t index)
{
    return ifl_draw(replica_of(step)->fixed.seed, IFL_DRAW_POLICY, r->serial, index);
}

IFL_HOT static void op_promise(struct ifl_step *step, struct ifl_promise promise)
{
    struct replica *replica = replica_of(step);
    if (!step_may_change(replica))
        return;
    if (IFL_RARE(promise.min_free_blocks < 0))
        step_breach(replica, "it promised to leave less than no block free");
    else
        plan_promise(&replica->plan, promise);
}

static void op_wake(struct ifl_step *step, int64_t at_ns)
{
    if (step_may_change(replica_of(step)))
        wakes_ask(&replica_of(step)->wakes, at_ns);
}

static void op_pad(struct ifl_step *step, struct ifl_padding padding)
{
    struct replica *replica = replica_of(step);
    if (!step_may_change(replica))
        return;
    if (step_may_pad(&padding))
        plan_pad(&replica->plan, padding);
    else
        step_breach(replica, "it pads with less than nothing, or with more than 2^28 tokens");
}

/* ---- room in the contract ---- */

/* The module keeps to the contract, but what says which K/V stays is serving.kv.keep. */
static void op_keep(struct ifl_step *step, const struct ifl_request *r, int32_t n_slots)
{
    struct replica *replica = replica_of(step);
    struct ifl_error error;
    if (!step_may_change(replica) || !step_knows(replica, r))
        return;
    step_sync(replica, live(r));
    if (n_slots >= r->stale.n_computed + r->stale.n_now)
        return;
    ifl_fail(&error, IFL_E_INPUT,
             "policy %s gives up K/V of running requests and serving.kv.keep.method %s",
             step_planner(replica)->name,
             replica->fixed.gives_up
                 ? "does so, too, expected a policy that leaves it to the method"
                 : "is all, expected snapkv, pyramidkv, h2o or streaming-llm and a policy that "
                   "leaves it to the method");
    plan_break(&replica->plan, &error);
}

static enum ifl_verdict op_load(struct ifl_step *step, const struct ifl_request *r, int32_t n,
                                enum ifl_load_way way)
{
    struct replica *replica = replica_of(step);
    if (!step_may_change(replica) || !step_knows(replica, r))
        return IFL_WAIT;
    const int32_t n_below = step_hit(step, r).n_below;
    if (n == 0)
        return IFL_YES;
    if (n != n_below)
        step_breach(replica, n_below == 0 ? "it loads K/V that lies at no other replica"
                                          : "it loads a part of the K/V at another replica");
    else if (way == IFL_LOAD_BY_LAYER)
        step_breach(replica, "it loads K/V of another replica layer by layer");
    else if (way == IFL_LOAD_BEFORE && replica->tiers.on)
        step_breach(replica, "it has a step wait for K/V of a tier, which its `load` key decides");
    if (replica->plan.broken)
        return IFL_WAIT;
    if (replica->tiers.on
            ? replica_load_below(replica, live(r), ifl_n_computed(r))
            : replica_load(replica, live(r), ifl_n_computed(r), way == IFL_LOAD_BEFORE))
        return IFL_YES;
    step_note_refusal(replica, r, step_planner(replica), "what it loads finds no free K/V blocks",
                      true);
    return IFL_NO_BLOCKS;
}

static int32_t op_adapter_users(struct ifl_step *step, uint32_t adapter)
{
    const struct adapters *adapters = &replica_of(step)->adapters;
    int32_t n = 0;
    if (adapter > 0)
        return adapter <= adapters->fixed.n ? adapters->of[adapter].n_users : 0;
    FOR_EACH_LIVE (r, &replica_of(step)->here.running, ON_DEVICE)
        n += r->pub.adapter == 0;
    return n;
}

const struct ifl_step_ops replica_step_ops = {
    .size_bytes = sizeof(struct ifl_step_ops),
    .next = step_next,
    .running = step_running,
    .last_ranked = step_last_ranked,
    .started = step_started,
    .hit = step_hit,
    .above = step_above,
    .need = op_need,
    .ask = step_ask,
    .room = step_room,
    .start = step_start,
    .schedule = step_schedule,
    .schedule_ready = step_schedule_ready,
    .make_room = step_make_room,
    .preempt = step_preempt,
    .reject = step_reject,
    .promise = op_promise,
    .wake = op_wake,
    .pad = op_pad,
    .oldest_waiting_ns = step_oldest_waiting_ns,
    .draw = op_draw,
    .took_part = step_took_part,
    .scheduled = step_scheduled,
    .refuse = step_refuse,
    .schedule_drafts = step_schedule_drafts,
    .keep = op_keep,
    .load = op_load,
    .adapter_users = op_adapter_users,
    .drafts = step_drafts,
    .start_padded = step_start_padded,
    .ask_for_all = step_ask_for_all,
};
