#include "run/flight.h"

#include <gsl/gsl_heapsort.h>
#include <stdio.h>
#include <stdlib.h>

#include "inflight/minmax.h"
#include "run/executor_paced.h"
#include "run/flight_loop.h"

IFL_APART static void wake_all(struct loop *loop)
{
    while (event_next_ns(&loop->wakes) <= loop->now_ns) {
        const struct event event = event_pop(&loop->wakes);
        loop_fall_due(loop, &loop->flight->replicas[event.payload]);
    }
}

static inline void wake(struct loop *loop)
{
    if (IFL_RARE(event_next_ns(&loop->wakes) <= loop->now_ns))
        wake_all(loop);
}

/* ---- plans ---- */

/* Checking mode: the promised step is planned all the same, and must be what was promised. As
 * plan_once. */
IFL_APART static int plan_promised(struct replica *replica, int64_t now_ns, struct ifl_error *error)
{
    const struct promised_step step = replica_promised_step(replica);
    const int rc = replica_plan(replica, now_ns, error);
    return rc == 0 ? replica_check_promised(replica, &step, error) : rc;
}

/* 1: the step was promised; 0: it is planned. */
static int plan_once(struct flight *flight, struct replica *replica, int64_t now_ns,
                     struct ifl_error *error)
{
    if (IFL_RARE(flight->check_steady) && replica_keeps_promise(replica, now_ns))
        return plan_promised(replica, now_ns, error);
    if (flight->steady_runs && !flight->check_steady && replica_repeat(replica, now_ns)) {
        flight->n_repeats++;
        return 1;
    }
    if (!flight->check_steady)
        replica_skip_blind_plan(replica);
    return replica_plan(replica, now_ns, error);
}

/* The module that the replica is woken for: an admission, or the batching module. */
static const struct ifl_policy *asks_to_wake(const struct replica *replica)
{
    const struct plan *plan = &replica->plan;
    return plan->refused_until_ns == replica->wakes.wake_ns && plan->refused_until_by
               ? plan->refused_until_by
               : replica->fixed.modules[IFL_BATCHING].policy;
}

static int count_wake(struct replica *replica, int64_t now_ns, bool moved, struct ifl_error *error)
{
    if (wakes_count(&replica->wakes, replica->view.step, moved) <= IFL_MAX_VAIN_WAKES)
        return 0;
    return ifl_fail(
        error, IFL_E_STALLED,
        "%s policy %s asks to wake for ever: %d times in a row, up to %.9f s, it planned "
        "nothing and nothing else happened, while %zu requests wait",
        module_kind_name(asks_to_wake(replica)->kind), asks_to_wake(replica)->name,
        IFL_MAX_VAIN_WAKES, ifl_s_from_ns(now_ns), replica_requests(replica));
}

/* True if the replica has asked to be woken at a later time. */
static bool sleeps(const struct loop *loop, const struct replica *replica)
{
    return replica->wakes.wake_ns > loop->now_ns && replica->wakes.wake_ns != IFL_NEVER;
}

/* After a plan without work the replica sleeps until the next event, or until the time that the
 * policy asked for. */
IFL_APART static int fall_asleep(struct loop *loop, struct replica *replica, bool moved,
                                 struct ifl_error *error)
{
    const int64_t at_ns = replica->wakes.wake_ns;
    if (!sleeps(loop, replica) || at_ns == replica->wakes.wake_asked_ns)
        return 0;
    wakes_note_event(&replica->wakes);
    if (count_wake(replica, loop->now_ns, moved, error) < 0)
        return error->code;
    struct event_heap *wakes = loop->lone ? &loop->lone[replica->fixed.number].wakes : &loop->wakes;
    return event_push(wakes, at_ns, replica->fixed.number, replica->fixed.number) < 0
               ? ifl_fail_nomem(error)
               : 0;
}

/* ---- steps that are ended without being submitted ---- */

/* An executor that foretells durations need not be waited for. Only with a single replica, for the
 * events of several must be put in order, with a single step in flight, and without a router that
 * may hold requests back. */
static bool sees_ahead(const struct flight *flight)
{
    return flight->n_replicas == 1 && !flight->router && !flight->tiers && !flight->swaps &&
           flight->executor->durations && !replica_overlaps(&flight->replicas[0]) &&
           flight->steady_runs && !flight->check_steady && !flight->records_work;
}

static int64_t next_event_ns(struct loop *loop)
{
    const int64_t arrival_ns = workload_next_ns(loop->flight->workload);
    const int64_t wake_ns = event_next_ns(&loop->wakes);
    int64_t next_ns = ifl_min(arrival_ns, wake_ns);
    if (IFL_RARE(loop->departures.at.n > 0))
        next_ns = ifl_min(next_ns, loop_next_departure_ns(loop));
    return ifl_min(next_ns, IFL_LAST_NS);
}

/* Delivers the wakes and arrivals before the end of the step, then ends it. 1: the one behind it is
 * promised all the same, and is committed; 0: a plan is due. */
static int end_after_arrivals(struct loop *loop, struct replica *replica,
                              const struct ifl_done *done, struct outlook *outlook,
                              struct ifl_error *error)
{
    loop->now_ns = done->end_ns - 1;
    wake(loop);
    const int rc = loop_let_come_and_go(loop, error);
    if (IFL_RARE(rc < 0))
        return rc;
    return replica_coasts(replica) && next_event_ns(loop) > done->end_ns
               ? loop_coast(loop, replica, done, done->end_ns + 1, outlook, error)
               : loop_end(loop, replica, done, error);
}

/* Ends the committed step, and those that repeat it until the next event, without calling the
 * executor for each. 1: the step that is committed then must be submitted; 0: all have ended, and a
 * plan is due. */
IFL_HOT static int end_foreseen(struct loop *loop, struct replica *replica, struct ifl_error *error)
{
    int64_t until_ns = next_event_ns(loop);
    struct outlook *outlook = &loop->outlook;
    struct ifl_done done = {.replica = replica->fixed.number};
    int rc = 1;
    outlook->n = outlook->at = 0;
    while (rc > 0 && loop_look_ahead(loop->flight, replica, until_ns, outlook)) {
        done.step = replica->in_flight.desc.step;
        done.start_ns = replica->in_flight.desc.start_ns;
        done.device_ns = outlook->duration_ns[outlook->at];
        done.end_ns = done.start_ns + done.device_ns;
        if (done.end_ns < until_ns && replica_coasts(replica)) {
            rc = loop_coast(loop, replica, &done, until_ns, outlook, error);
            continue;
        }
        rc = done.end_ns <= until_ns /* nothing comes before */
                 ? loop_end(loop, replica, &done, error)
                 : end_after_arrivals(loop, replica, &done, outlook, error);
        if (rc > 0)
            until_ns = next_event_ns(loop);
    }
    return rc;
}

static int submit(struct loop *loop, struct replica *replica, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    loop->n_busy++;
    if (IFL_RARE(lockstep_group(&loop->lockstep, replica->fixed.number) != NULL)) {
        lockstep_get_ready(&loop->lockstep, replica->fixed.number);
        return 0;
    }
    return loop_submit(flight, replica, &replica->in_flight.desc, error);
}

IFL_HOT int loop_check_stop(const struct loop *loop, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    return flight->stop && *flight->stop ? ifl_fail(error, IFL_E_INTERRUPTED, "interrupted") : 0;
}

/* True if the plan has changed more than the step. A request that comes back beside steps leaves
 * the swapped list, for which prompts may wait. */
static bool has_moved(const struct replica *replica)
{
    const struct ifl_step *step = &replica->plan.step;
    return replica->plan.n_rejected > 0 || step->n_preempted > 0 ||
           (replica->fixed.swaps_apart && step->n_swapped_in > 0);
}

/* What the plan has asked of K/V that moves beside steps. */
IFL_APART static int hear_plan(struct loop *loop, struct replica *replica, bool submits,
                               struct ifl_error *error)
{
    int rc = 0;
    if (replica->tiers.on)
        rc = tiering_hear_plan(loop->tiering, replica, submits, error);
    if (rc == 0 && replica->moving.n_swaps > 0)
        rc = swapping_hear_plan(loop->swapping, replica, error);
    if (rc == 0 && replica->moving.n_asked > 0)
        rc = moves_hear_plan(loop->moves, replica, error);
    return rc;
}

/* The plan has nothing to submit. 1: another one is tried; 0: the replica sleeps. */
IFL_APART static int try_again(struct loop *loop, struct replica *replica, bool lets_ended_go,
                               size_t *n_tries, struct ifl_error *error)
{
    if (replica->wakes.wake_ns == loop->now_ns) {
        *n_tries = 0;
        return count_wake(replica, loop->now_ns, false, error) < 0 ? error->code : 1;
    }
    const bool moved = lets_ended_go || has_moved(replica);
    if (replica->plan.n_rejected > 0) /* rejections are finite */
        *n_tries = 0;
    if (moved && *n_tries <= replica_requests(replica) + 1)
        return 1;
    const bool tries_on =
        replica_overlaps(replica) && replica->moving.n_before == 0 && replica_tries_on(replica);
    if (!tries_on) {
        if (replica_awaits_step(replica) || sleeps(loop, replica) ||
            !replica_give_up(replica, false))
            return fall_asleep(loop, replica, moved, error);
        *n_tries = 0;
    }
    const int rc = loop_report_gone(loop, replica, error);
    return rc < 0 ? rc : 1;
}

IFL_HOT int loop_commit(struct loop *loop, struct replica *replica, struct ifl_error *error)
{
    int rc = 1;
    for (size_t n_tries = 0; rc > 0 && replica_requests(replica) > (size_t)replica->moving.n;
         n_tries++) {
        rc = plan_once(loop->flight, replica, loop->now_ns, error);
        if (IFL_RARE(rc < 0))
            return rc;
        const bool promised = rc > 0;
        const bool lets_ended_go = replica->leaving.n_ended > 0;
        const bool submits = replica_commit(replica);
        if (IFL_RARE(loop->carries) && (rc = hear_plan(loop, replica, submits, error)) < 0)
            return rc;
        if (IFL_RARE(replica->leaving.n_gone > 0) &&
            (rc = loop_report_gone(loop, replica, error)) < 0)
            return rc;
        if (IFL_RARE(replica->plan.broken)) { /* in on_step_start */
            *error = replica->plan.error;
            return error->code;
        }
        if (submits) {
            loop->flight->n_plans += !promised;
            return 1;
        }
        rc = try_again(loop, replica, lets_ended_go, &n_tries, error);
    }
    if (rc > 0 && IFL_RARE(replica_overlaps(replica)))
        replica_wait_for_step(replica);
    return ifl_min(rc, 0);
}

/* Plans until the executor has work to wait for, or nothing changes any more. */
static int plan_step(struct loop *loop, struct replica *replica, struct ifl_error *error)
{
    int rc;
    while ((rc = loop_commit(loop, replica, error)) > 0) {
        rc = loop->sees_ahead ? end_foreseen(loop, replica, error) : 1;
        if (rc > 0 && IFL_RARE(loop->carries) && loop_hold_step(loop, replica))
            return 0;
        if (rc > 0)
            rc = submit(loop, replica, error);
        if (rc == 0 && IFL_RARE(loop->rotates))
            rc = loop_rotate(loop, replica, next_event_ns(loop), error);
        if (rc < 0 || replica->in_flight.busy)
            return rc;
        if ((rc = loop_let_come_and_go(loop, error)) < 0 || (rc = loop_check_stop(loop, error)) < 0)
            return rc;
    }
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Plans for the replicas that fell due, in the order of their numbers; then for those that fell due
 * by these plans: what one replica has loaded frees blocks at another one. */
IFL_HOT static int plan_due(struct loop *loop, struct ifl_error *error)
{
    int rc = 0;
    while (loop->n_due > 0 && rc == 0) {
        uint32_t *due = loop->due;
        const uint32_t n_due = loop->n_due;
        loop->due = loop->was_due;
        loop->was_due = due;
        loop->n_due = 0;
        if (IFL_RARE(n_due > 1))
            gsl_heapsort(due, n_due, sizeof *due, by_number);
        for (uint32_t i = 0; i < n_due && rc == 0; i++) {
            struct replica *replica = &loop->flight->replicas[due[i]];
            rc = plan_step(loop, replica, error);
            wakes_set_due(&replica->wakes, false);
            routing_note(&loop->routing, replica, loop->now_ns);
            loop->asks_held = loop->asks_held || routing_holds(&loop->routing);
        }
    }
    return rc == 0 ? lockstep_start(&loop->lockstep, loop->flight->replicas, loop->flight->executor,
                                    loop->flight->executor_self, error)
                   : rc;
}

/* A plan changes the loads, so that the router may send on what it has held back, for which
 * another plan may fall due. */
static int plan_and_ask(struct loop *loop, struct ifl_error *error)
{
    int rc = plan_due(loop, error);
    while (rc == 0 && IFL_RARE(routing_holds(&loop->routing)) && loop->asks_held) {
        rc = loop_ask_held(loop, error);
        if (rc == 0)
            rc = plan_due(loop, error);
    }
    return rc;
}

/* ---- the loop ---- */

/* The module that has taken back every start of the last plan; NULL: none has. */
static const struct ifl_policy *undoes_all_starts(const struct replica *replica)
{
    const struct plan *plan = &replica->plan;
    size_t i = 0;
    while (i < plan->started.n && plan->started.of[i]->state != IFL_RUNNING)
        i++;
    return i == plan->started.n && plan->step.n_started > 0 ? plan->undone_by : NULL;
}

/* Fails the run: the batching module neither serves nor refuses the requests that are left, or
 * another one takes its starts back. */
static int fail_idle(const struct flight *flight, struct replica *replica, struct ifl_error *error)
{
    uint64_t at[2] = {0, 0};
    const struct live_request *r = waiting_next(&replica->here.waiting, at);
    char first[96] = "";
    if (r)
        snprintf(first, sizeof first, "; first in line is request %llu, %d tokens and %d sequences",
                 (unsigned long long)ifl_trace_id(flight->workload->trace, r->row),
                 r->pub.stale.n_tokens, r->pub.n_seqs);
    const struct ifl_policy *undoes = undoes_all_starts(replica);
    if (undoes)
        return ifl_fail(error, IFL_E_STALLED,
                        "%s policy %s takes back each start of a plan (%d in the last one), and "
                        "nothing else can happen: %zu requests wait, %zu run and %zu are swapped "
                        "out%s",
                        module_kind_name(undoes->kind), undoes->name, replica->plan.step.n_started,
                        replica->here.waiting.n, replica->here.running.n, replica->here.n_swapped,
                        first);
    return ifl_fail(
        error, IFL_E_STALLED,
        "batching policy %s leaves %zu requests waiting, %zu running and %zu swapped out, "
        "refuses none of them, and nothing can happen any more%s",
        replica->fixed.modules[IFL_BATCHING].policy->name, replica->here.waiting.n,
        replica->here.running.n, replica->here.n_swapped, first);
}

int loop_give_up(struct loop *loop, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    struct replica *stuck = NULL;
    int rc = 0;
    for (uint32_t i = 0; i < flight->n_replicas && rc >= 0; i++) {
        struct replica *replica = &flight->replicas[i];
        if (replica_requests(replica) == (size_t)replica->moving.n)
            continue;
        if (!replica_give_up(replica, true)) {
            if (replica->moving.n == 0)
                return fail_idle(flight, replica, error);
            stuck = replica; /* another replica may have its blocks free */
            continue;
        }
        loop_fall_due(loop, replica);
        rc = loop_report_gone(loop, replica, error) < 0 ? error->code : 1;
    }
    if (rc == 0)
        rc = loop_give_up_held(loop, error);
    return rc == 0 && stuck ? fail_idle(flight, stuck, error) : rc;
}

/* Records preemptions behind the last step, of requests that were dropped then. */
static int record_last_preemptions(const struct flight *flight, struct ifl_error *error)
{
    struct ifl_step_record record;
    int rc = 0;
    for (uint32_t i = 0; i < flight->n_replicas && rc == 0; i++)
        if (replica_preempted_since(&flight->replicas[i], &record))
            rc = ifl_record_step(flight->recorder, &record, error);
    return rc;
}

/* All ranks of a group may plan again. */
static void fall_due_together(struct loop *loop, struct replica *replica)
{
    const struct lockstep_group *group = lockstep_group(&loop->lockstep, replica->fixed.number);
    const uint32_t first = group ? group->first : replica->fixed.number, n = group ? group->n : 1;
    for (uint32_t i = first; i < first + n; i++)
        loop_fall_due(loop, &loop->flight->replicas[i]);
}

static int end_step(struct loop *loop, const struct ifl_done *done, struct ifl_error *error)
{
    struct replica *replica = &loop->flight->replicas[done->replica];
    const int rc = loop_end(loop, replica, done, error);
    loop->n_busy--;
    if (lockstep_end(&loop->lockstep, done->replica))
        fall_due_together(loop, replica);
    routing_note(&loop->routing, replica, loop->now_ns);
    loop->asks_held = loop->asks_held || routing_holds(&loop->routing);
    return rc;
}

/* Steps of other replicas that end at the same time. */
static int end_others(struct loop *loop, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    struct ifl_done done;
    int rc = 1;
    while (rc > 0 && loop->n_busy > 0) {
        rc = flight->executor->next(flight->executor_self, loop->now_ns, &done, error);
        if (rc == IFL_NEXT_MOVED)
            return 0;
        if (rc > 0 && end_step(loop, &done, error) < 0)
            return error->code;
    }
    return rc < 0 ? rc : 0;
}

/* When K/V that moves beside steps comes next. */
IFL_APART static int64_t next_carried_ns(const struct loop *loop)
{
    int64_t until_ns = IFL_NEVER;
    if (loop->moves)
        until_ns = ifl_min(until_ns, moves_next_ns(loop->moves));
    if (loop->migrating)
        until_ns = ifl_min(until_ns, migrating_next_ns(loop->migrating));
    if (loop->swapping)
        until_ns = ifl_min(until_ns, swapping_next_ns(loop->swapping));
    if (loop->tiering)
        until_ns = ifl_min(until_ns, tiering_next_ns(loop->tiering));
    return until_ns;
}

/* Hands over what has come by now. What an executor has moved is for one of them: the others leave
 * it to that one. */
IFL_APART static int end_carried(struct loop *loop, struct ifl_error *error)
{
    int rc = 0;
    do {
        if (loop->moves)
            rc = moves_end(loop->moves, error);
        if (rc == 0 && loop->migrating)
            rc = migrating_end(loop->migrating, error);
        if (rc == 0 && loop->swapping)
            rc = swapping_end(loop->swapping, error);
        if (rc == 0 && loop->tiering)
            rc = tiering_end(loop->tiering, error);
    } while (rc == 0 && loop->carried.is_there);
    return rc;
}

/* Waits for the next event. 1: now_ns has moved; 0: there is no event any more. */
static int advance(struct loop *loop, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    struct ifl_done done;
    if (IFL_RARE(loop->open) && outside_look(loop, error) < 0)
        return error->code;
    int64_t until_ns = workload_next_ns(flight->workload);
    if (event_next_ns(&loop->wakes) < until_ns)
        until_ns = event_next_ns(&loop->wakes);
    if (loop_next_departure_ns(loop) < until_ns)
        until_ns = loop_next_departure_ns(loop);
    if (IFL_RARE(loop->carries))
        until_ns = ifl_min(until_ns, next_carried_ns(loop));
    if (loop->n_busy == 0 && until_ns == IFL_NEVER && !routing_holds(&loop->routing) && !loop->open)
        return 0;
    const int64_t news_ns = routing_next_news_ns(&loop->routing, loop->now_ns);
    until_ns = ifl_min(until_ns, news_ns);
    if (loop->n_busy == 0 && until_ns == IFL_NEVER && !loop->open)
        return 0;
    int rc = flight->executor->next(flight->executor_self, until_ns, &done, error);
    if (rc == EXECUTOR_SOURCE_SPEAKS)
        return 1;
    if (rc == 0)
        loop->now_ns = until_ns;
    if (rc == IFL_NEXT_MOVED)
        loop->now_ns = ifl_max(loop->now_ns, done.end_ns);
    if (rc > 0)
        rc = rc == IFL_NEXT_MOVED ? 0 : end_step(loop, &done, error);
    if (rc == 0)
        rc = end_others(loop, error);
    if (rc == 0 && IFL_RARE(loop->carries))
        rc = end_carried(loop, error);
    if (rc == 0)
        rc = loop_let_leave(loop, error);
    if (rc == 0 && IFL_RARE(loop->migrating != NULL))
        rc = migrating_pair(loop->migrating, error);
    loop->asks_held |= routing_hear_news(&loop->routing, loop->now_ns);
    wake(loop);
    return rc < 0 ? rc : 1;
}

/* Replicas that fly apart land when a request is held, and fly on together. */
static int run_apart(struct loop *loop, struct ifl_error *error)
{
    const int rc = apart_run(loop, error);
    if (rc <= 0)
        return rc;
    wake(loop);
    loop->asks_held = false;
    return plan_and_ask(loop, error) < 0 ? error->code : 1;
}

IFL_HOT static int run(struct loop *loop, struct ifl_error *error)
{
    int rc = loop->lone ? run_apart(loop, error) : 1;
    while (rc > 0) {
        rc = advance(loop, error);
        if (rc == 0)
            rc = loop_give_up(loop, error);
        if (rc <= 0)
            break;
        rc = loop_check_stop(loop, error);
        if (IFL_RARE(loop->routing.router != NULL) && rc == 0 && loop->asks_held)
            rc = loop_ask_held(loop, error);
        if (rc == 0)
            rc = loop_let_come_and_go(loop, error);
        if (rc == 0)
            rc = plan_and_ask(loop, error);
        rc = rc < 0 ? rc : 1;
    }
    return rc < 0 ? rc : record_last_preemptions(loop->flight, error);
}

IFL_FOR_ASSERTS static inline bool are_pooled(const struct flight *flight)
{
    uint32_t n = 0;
    for (size_t i = 0; i < flight->n_pools && flight->pools[i].first == n; i++)
        n += flight->pools[i].n;
    return n == flight->n_replicas;
}

IFL_FOR_ASSERTS static inline bool are_numbered(const struct flight *flight)
{
    for (uint32_t i = 0; i < flight->n_replicas; i++)
        if (flight->replicas[i].fixed.number != i)
            return false;
    return true;
}

/* What is the same during the whole run. */
static void look_at_flight(struct loop *loop)
{
    const struct flight *flight = loop->flight;
    loop->sees_ahead = sees_ahead(flight);
    loop->rotates = loop_may_rotate(loop);
    loop->one_pool = loop_has_one_pool(flight);
    loop->carries = loop->moves || loop->migrating || loop->swapping || loop->tiering;
    loop->tells_steps = loop_tells_steps(loop);
    for (size_t i = 0; i < flight->n_pools; i++)
        loop->shares_pipelines |= flight->pools[i].n_engines > 1;
}

int flight_run(struct flight *flight, struct ifl_error *error)
{
    ifl_assert(flight->router || flight->n_replicas == 1);
    ifl_assert(are_numbered(flight));
    ifl_assert(are_pooled(flight));
    const uint32_t n = flight->n_replicas;
    struct loop loop = {.flight = flight,
                        .due = calloc(n, sizeof *loop.due),
                        .was_due = calloc(n, sizeof *loop.was_due),
                        .held = calloc(n, sizeof *loop.held)};
    int rc = loop_open(&loop, error);
    look_at_flight(&loop);
    for (uint32_t i = 0; i < n; i++) {
        replica_check(&flight->replicas[i], flight->check_steady);
        wakes_begin(&flight->replicas[i].wakes);
    }
    if (rc == 0)
        rc = run(&loop, error);
    if (rc == 0)
        rc = loop_check_contract(&loop, error);
    loop_tell_progress(&loop);
    flight->shed = loop.routing.refusals;
    flight->n_dummies = loop.lockstep.n_dummies;
    loop_close(&loop);
    return rc;
}
