/* Starting a request: the admit modules are asked, blocks are taken, and a waiting or swapped
 * request runs from then on. */
#include "replica/step_builder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "inflight/minmax.h"
#include "replica/step_limits.h"

/* ---- admission ---- */

/* How many tokens a start may compute is what the request has left. */
IFL_COLD static void breach_tokens(struct replica *replica, const struct ifl_request *request,
                                   int32_t n, bool starts)
{
    char text[160];
    snprintf(text, sizeof text,
             "it %s request %zu with %d tokens, expected 0 to the %d that are left",
             starts ? "started" : "asked whether to start", live(request)->row, n,
             request_todo(request));
    step_breach(replica, text);
}

/* starts: false, it is only asked about. */
static bool may_start(struct replica *replica, const struct ifl_request *request, int32_t n,
                      bool starts)
{
    if (IFL_RARE(request->state != IFL_WAITING && request->state != IFL_SWAPPED &&
                 request->state != IFL_LOADED))
        step_breach(replica, starts
                                 ? "it started a request that neither waits nor is swapped"
                                 : "it asked whether to start a request that neither waits nor is "
                                   "swapped");
    else if (n < 0 || n > request_todo(request))
        breach_tokens(replica, request, n, starts);
    else if (!step_has_room(replica))
        step_breach(replica, step_no_room);
    else if (IFL_RARE(replica->plan.answering))
        step_breach(replica, step_no_question);
    return !replica->plan.broken;
}

/* One that is not IFL_YES. */
static void note_verdict(struct replica *replica, const struct ifl_policy *by,
                         const struct ifl_request *r, enum ifl_verdict verdict)
{
    static const struct {
        const char *why;
        bool lasts;
    } of[] = {
        [IFL_NO_BLOCKS] = {"it finds too few free K/V blocks", true},
        [IFL_NO_HOST_BLOCKS] = {"it finds too little host memory free", true},
        [IFL_WAIT] = {"it had them wait until no event was left", false},
        [IFL_SKIP] = {"it passed them over until no event was left", false},
        [IFL_NEVER_FITS] = {"it never fits", true},
    };
    if ((unsigned)verdict <= IFL_NEVER_FITS)
        step_note_refusal(replica, r, by, of[verdict].why, of[verdict].lasts);
    else
        step_breach_answer(replica, by, (int)verdict,
                           "to whether a request may start, expected one of enum ifl_verdict");
}

/* The admit modules say yes, but the blocks are not free, or not next to one another. */
IFL_APART static enum ifl_verdict note_no_blocks(struct replica *replica,
                                                 const struct ifl_request *r)
{
    step_note_refusal(replica, r, replica->fixed.modules[IFL_ADMIT].policy,
                      "what it asks for is not free", true);
    return IFL_NO_BLOCKS;
}

/* After a refusal with an until_ns the replica wakes then, to ask again. */
static void note_hour(struct replica *replica, const struct ifl_policy *by, int64_t until_ns)
{
    if (until_ns <= replica->view.now_ns)
        return;
    plan_refuse_until(&replica->plan, by, until_ns);
    wakes_ask(&replica->wakes, until_ns);
}

/* Asks the admit modules one after the other. The first refusal is the answer; after yes from all
 * of them, the largest hold_tokens. */
static struct ifl_admission answer_of_all(struct replica *replica,
                                          const struct ifl_request *request, int32_t n)
{
    struct ifl_admission answer = {IFL_YES, 0, 0};
    FOR_EACH_LISTENER (module, &replica->on, &replica->on.admission) {
        const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
        const uint64_t print = replica_print(replica, &request, 1);
        const struct ifl_admission own = module->policy->ops.admit->ask(
            module->self, &replica->view, &replica->plan.step, request, n);
        replica_compare(replica, module, print, &request, 1);
        plan_return(&replica->plan, before);
        replica_note_said(replica, module, request->serial << 32 | (uint32_t)n,
                          (int64_t)own.verdict << 32 | (uint32_t)own.hold_tokens);
        if (IFL_RARE(own.verdict != IFL_YES)) {
            if (module != &replica->fixed.modules[replica->on.admission.of[0]])
                plan_overrule(&replica->plan);
            note_verdict(replica, module->policy, request, own.verdict);
            note_hour(replica, module->policy, own.until_ns);
            return own;
        }
        if (IFL_RARE(own.hold_tokens < 0))
            step_breach_answer(replica, module->policy, own.hold_tokens,
                               "to how many tokens a start holds blocks for, expected 0 or more");
        if (own.hold_tokens > answer.hold_tokens)
            answer.hold_tokens = own.hold_tokens;
    }
    return answer;
}

/* K/V of its prompt is on its way to the first tier. */
IFL_APART static bool awaits_prefetch(struct replica *replica, struct live_request *r)
{
    int64_t until_ns;
    if (!replica_passes_over(replica, r, &until_ns))
        return false;
    step_note_refusal(replica, &r->pub, replica->fixed.modules[IFL_ADMIT].policy,
                      "its K/V is on its way", false);
    if (until_ns != IFL_NEVER)
        note_hour(replica, replica->fixed.modules[IFL_ADMIT].policy, until_ns);
    return true;
}

IFL_HOT static struct ifl_admission
admission(struct replica *replica, const struct ifl_request *request, int32_t n, bool starts)
{
    if (!may_start(replica, request, n, starts))
        return ifl_admission(IFL_WAIT, 0);
    if (IFL_RARE(request->state == IFL_LOADED)) /* it was admitted as it was loaded */
        return ifl_admission(IFL_YES, 0);
    if (IFL_RARE(live(request)->rare->tiers.prefetches) && awaits_prefetch(replica, live(request)))
        return ifl_admission(IFL_SKIP, 0);
    plan_ask(&replica->plan, IFL_ADMIT);
    plan_set_answering(&replica->plan, true);
    const struct ifl_admission answer = answer_of_all(replica, request, n);
    plan_set_answering(&replica->plan, false);
    return IFL_RARE(replica->plan.broken) ? ifl_admission(IFL_WAIT, 0) : answer;
}

/* n, or less if the hit of the request has grown since the plan looked: a request preempted since
 * may have left blocks in the cache. */
static int32_t still_to_compute(struct replica *replica, const struct ifl_request *request,
                                int32_t n)
{
    if (!replica->kv.device.cached || request->state != IFL_WAITING)
        return n;
    replica_look_up(replica, live(request));
    return ifl_min(n, request_todo(request));
}

enum ifl_verdict step_ask(struct ifl_step *step, const struct ifl_request *request, int32_t n,
                          int32_t spare_blocks, int32_t *takes)
{
    struct replica *replica = replica_of(step);
    if (!step_knows(replica, request)) {
        if (takes)
            *takes = 0;
        return IFL_WAIT;
    }
    n = still_to_compute(replica, request, n);
    spare_blocks = step_spare(replica, spare_blocks);
    plan_set_aside(&replica->plan, spare_blocks);
    const struct ifl_admission answer = admission(replica, request, n, false);
    plan_set_aside(&replica->plan, -spare_blocks);
    const int32_t slots = replica_slots_for(replica, live(request), n, 0);
    if (takes)
        *takes = replica_need(replica, live(request), ifl_max(answer.hold_tokens, slots));
    return answer.verdict;
}

static enum ifl_verdict answer_for_all(struct replica *replica, const struct module *module)
{
    const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
    const uint64_t print = replica_print(replica, NULL, 0);
    const enum ifl_verdict verdict =
        module->policy->ops.admit->for_all(module->self, &replica->view, &replica->plan.step);
    replica_compare(replica, module, print, NULL, 0);
    plan_return(&replica->plan, before);
    replica_note_said(replica, module, UINT64_MAX, verdict);
    if (IFL_RARE((unsigned)verdict > IFL_NEVER_FITS))
        step_breach_answer(replica, module->policy, (int)verdict,
                           "to whether any request may start, expected one of enum ifl_verdict");
    return IFL_RARE(replica->plan.broken) ? IFL_YES : verdict;
}

/* The first module counts: those behind it are not asked about what it refuses. A request that K/V
 * is on its way for is refused without any. */
enum ifl_verdict step_ask_for_all(struct ifl_step *step, int32_t *longest)
{
    struct replica *replica = replica_of(step);
    const struct module *first = &replica->fixed.modules[replica->on.admission.of[0]];
    *longest = replica->here.waiting.longest_tokens;
    if (!first->policy->ops.admit->for_all || step->n_loaded > 0 || replica->tiers.on ||
        replica->fixed.max_samples > 1)
        return IFL_YES;
    if (IFL_RARE(replica->plan.answering))
        step_breach(replica, step_no_question);
    plan_ask(&replica->plan, IFL_ADMIT);
    return answer_for_all(replica, first);
}

/* The room of a module with `steady` may shrink from step to step; that of another one may also
 * explain another plan. */
IFL_COLD static void say_room(struct replica *replica, const struct module *module, double room)
{
    int64_t answer;
    memcpy(&answer, &room, sizeof answer);
    if (!module->policy->steady)
        replica_say(replica, module, UINT64_MAX - 1, answer);
}

/* Any number of tokens is an answer, negative and infinite ones, too. */
static double room_by(struct replica *replica, const struct module *module, double enough)
{
    struct ifl_step *step = &replica->plan.step;
    const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
    plan_set_rooming(&replica->plan, true);
    const double room = module->policy->ops.admit->room(module->self, &replica->view, step, enough);
    plan_set_rooming(&replica->plan, false);
    plan_return(&replica->plan, before);
    if (IFL_RARE(replica->said.checks))
        say_room(replica, module, room);
    if (isnan(room))
        step_breach_by(replica, module->policy,
                       "it answers NaN to `room`, expected a number of tokens");
    return room;
}

double step_room(struct ifl_step *step, double enough)
{
    struct replica *replica = replica_of(step);
    double least = INFINITY;
    if (IFL_RARE(replica->plan.rooming)) {
        step_breach(replica, step_no_question);
        return enough;
    }
    FOR_EACH_LISTENER (module, &replica->on, &replica->on.admission) {
        if (!module->policy->ops.admit->room)
            continue;
        plan_ask(&replica->plan, IFL_ADMIT);
        least = fmin(least, room_by(replica, module, enough));
    }
    return least;
}

/* ---- the start ---- */

/* Host blocks are swapped in to fresh device blocks; the request holds `hold` blocks after. The
 * host blocks stay taken until the plan is done: swap-outs of the same step run before they are
 * read. */
IFL_APART static bool bring_back(struct replica *replica, struct live_request *r, int32_t hold)
{
    const int32_t n_host = r->pub.n_host_blocks;
    const int32_t n = ifl_max(hold, n_host);
    if (!kv_fits(&replica->kv.device, n) || !replica_reserve_numbers(replica, r, n))
        return false;
    const bool numbered = !replica->kv.device.tallied;
    if (numbered)
        plan_swap_in_from(&replica->plan, r, n_host);
    r->pub.n_host_blocks = 0;
    replica_take_blocks(replica, r, n);
    plan_swap_in_to(&replica->plan, r, n_host, numbered);
    replica_count_back(replica, r);
    step_remove_swapped(replica, r);
    return true;
}

/* What a waiting request has at another replica comes first: it is on its way from now on, and is
 * started once it is LOADED. */
IFL_APART static enum ifl_verdict load_first(struct replica *replica, struct live_request *r,
                                             int32_t hold)
{
    return (IFL_RARE(replica->tiers.on)
                ? replica_load_below(replica, r, hold)
                : replica_load(replica, r, hold, replica->fixed.loads_before))
               ? IFL_SKIP
               : note_no_blocks(replica, &r->pub);
}

static bool lies_elsewhere(const struct replica *replica, const struct live_request *r)
{
    return IFL_RARE(r->n_below > 0) && r->pub.state == IFL_WAITING &&
           r->n_below > replica_cached_tokens(replica, r) &&
           (!replica->tiers.on || replica_loads_apart(replica, r));
}

/* On the device and in the tiers below it. */
IFL_APART static void take_all_found(struct replica *replica, struct live_request *r)
{
    if (r->first_scheduled_ns == IFL_NEVER)
        replica_note_found(replica, r);
    if (r->n_below > 0)
        replica_take_below(replica, r);
}

IFL_HOT static bool leave_queue(struct replica *replica, struct live_request *r, int32_t hold)
{
    if (IFL_RARE(r->n_below > 0) && replica->tiers.on && !replica_note_loads(replica, r))
        return false;
    if (!replica_first_blocks(replica, r, hold))
        return false;
    waiting_leave(&replica->here.waiting, r);
    r->swapped_in = false;
    if (IFL_RARE(replica->tiers.on))
        take_all_found(replica, r);
    else if (r->first_scheduled_ns == IFL_NEVER)
        r->cached_tokens = r->pub.stale.n_computed;
    r->pub.n_prefill = r->pub.stale.n_tokens;
    r->pub.started_ns = replica->view.now_ns;
    plan_count_start(&replica->plan, r);
    return true;
}

/* Beside steps: it runs once it has come. */
IFL_APART static enum ifl_verdict come_back(struct replica *replica, struct live_request *r,
                                            int32_t hold, int32_t hold_tokens, int32_t n_slots)
{
    if (!replica_fits_beside(replica, r, ifl_max(hold_tokens, n_slots)) ||
        !replica_swap_in(replica, r, hold))
        return note_no_blocks(replica, &r->pub);
    r->n_promised = hold_tokens > n_slots ? hold : 0;
    return IFL_SKIP;
}

void replica_tell_started(struct replica *replica, const struct live_request *r)
{
    FOR_EACH_LISTENER (module, &replica->on, &replica->on.start) {
        const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
        module->policy->on_start(module->self, &replica->view, &r->pub);
        plan_return(&replica->plan, before);
        replica_stir_keys_of(replica, module);
    }
}

/* Slots for n tokens of r, what it looks ahead for, and n_rows in place of guesses. */
static int32_t slots_to_start(const struct replica *replica, const struct live_request *r,
                              int32_t n, int32_t n_rows)
{
    const int32_t slots = replica_slots_for(replica, r, n, 0);
    return IFL_RARE(n_rows > 0)
               ? ifl_max(slots, ifl_min(slots + n_rows, replica->fixed.limits.max_model_tokens))
               : slots;
}

IFL_HOT static enum ifl_verdict start(struct replica *replica, const struct ifl_request *request,
                                      int32_t n, int32_t n_rows)
{
    struct live_request *r = live(request);
    const bool brings_back = request->state == IFL_SWAPPED && n == 0;
    if (!(brings_back ? step_may_swap(replica) : step_may_change(replica)) ||
        !step_knows(replica, request))
        return IFL_WAIT;
    n = still_to_compute(replica, request, n);
    const struct ifl_admission answer = admission(replica, request, n, true);
    if (answer.verdict != IFL_YES)
        return answer.verdict;
    const int32_t n_slots = live_slots(r) + n;
    const int32_t slots = slots_to_start(replica, r, n, n_rows);
    const int32_t hold = replica_hold_blocks(replica, r, ifl_max(answer.hold_tokens, slots));
    if (lies_elsewhere(replica, r))
        return load_first(replica, r, ifl_max(answer.hold_tokens, n_slots));
    if (request->state == IFL_SWAPPED && replica->fixed.swaps_apart)
        return come_back(replica, r, hold, answer.hold_tokens, n_slots);
    if (!replica_fits_beside(replica, r, ifl_max(answer.hold_tokens, slots)) ||
        !(IFL_RARE(request->state == IFL_SWAPPED)  ? bring_back(replica, r, hold)
          : IFL_RARE(request->state == IFL_LOADED) ? replica_start_loaded(replica, r, hold)
                                                   : leave_queue(replica, r, hold)))
        return note_no_blocks(replica, request);
    if (IFL_RARE(r->n_below > 0)) {
        moving_do_without(&replica->moving, r);
        r->n_below = 0;
    }
    replica_take_beside(replica, r);
    r->n_promised = answer.hold_tokens > n_slots ? hold : 0;
    r->pub.state = IFL_RUNNING;
    here_start(&replica->here, r);
    replica_note_rank(replica, RANKED_RUNNING, r);
    plan_count_running(&replica->plan, r);
    step_count_blocks(replica);
    if (n > 0)
        step_put_in_plan(replica, r, n, n_rows);
    replica_tell_started(replica, r);
    replica_stir_keys(replica);
    return IFL_YES;
}

IFL_HOT enum ifl_verdict step_start(struct ifl_step *step, const struct ifl_request *request,
                                    int32_t n)
{
    return start(replica_of(step), request, n, 0);
}

enum ifl_verdict step_start_padded(struct ifl_step *step, const struct ifl_request *request,
                                   int32_t n, int32_t n_rows)
{
    struct replica *replica = replica_of(step);
    if (!step_may_change(replica))
        return IFL_WAIT;
    if (n <= 0 || n_rows <= 0 || n_rows > step->max_drafts) {
        step_breach(replica, "it pads a start with no token or no row, or with more rows than a "
                             "request may have guesses");
        return IFL_WAIT;
    }
    return start(replica, request, n, n_rows);
}
