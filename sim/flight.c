#include "flight.h"

#include <string.h>

/* ---- requests that end ---- */

static int report_gone(struct flight *flight, int64_t now_ns, struct ifl_error *error)
{
    struct replica *replica = flight->replica;
    const struct ifl_trace *trace = flight->workload->trace;
    int rc = 0;
    for (size_t i = 0; i < replica->n_gone && rc == 0; i++) {
        const struct live_request *r = replica->gone[i];
        struct ifl_request_record record;
        if (flight->executor->forget)
            flight->executor->forget(flight->executor_self, r->pub.serial);
        replica_report(replica, r, &record);
        if (trace->request_id)
            record.request_id = trace->request_id[r->row];
        rc = ifl_record_request(flight->recorder, &record, error);
        if (rc == 0)
            rc = workload_ended(flight->workload, r->row, now_ns, error);
    }
    if (flight->n_ended)
        atomic_fetch_add_explicit(flight->n_ended, replica->n_gone, memory_order_relaxed);
    replica_recycle(replica);
    return rc;
}

/* ---- arrivals ---- */

/* A request that is longer than the model or the pool could never finish. */
static int turn_away(struct flight *flight, const struct arrival *a, struct ifl_error *error)
{
    const struct ifl_trace *trace = flight->workload->trace;
    const struct ifl_request_record record = {
        .request_id = trace->request_id ? trace->request_id[a->row] : a->row,
        .arrival_ns = a->at_ns,
        .first_scheduled_ns = IFL_NEVER,
        .first_token_ns = IFL_NEVER,
        .finish_ns = IFL_NEVER,
        .max_itl_ns = -1,
        .ttft_slo_ns = a->ttft_slo_ns,
        .tpot_slo_ns = a->tpot_slo_ns,
        .prompt_tokens = a->n_prompt,
        .status = IFL_REJECTED,
    };
    if (flight->n_ended)
        atomic_fetch_add_explicit(flight->n_ended, 1, memory_order_relaxed);
    const int rc = ifl_record_request(flight->recorder, &record, error);
    return rc < 0 ? rc : workload_ended(flight->workload, a->row, a->at_ns, error);
}

static int let_arrive(struct flight *flight, int64_t now_ns, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0 && workload_next_ns(flight->workload) <= now_ns) {
        struct arrival a;
        workload_take(flight->workload, &a);
        rc = replica_never_fits(flight->replica, a.n_prompt, a.n_output)
                 ? turn_away(flight, &a, error)
                 : replica_join(flight->replica, &a, error);
    }
    return rc;
}

/* ---- plans ---- */

/* Checking mode: the promised step is planned, and must be what was promised. */
static int plan_promised(struct flight *flight, int64_t now_ns, struct ifl_error *error)
{
    struct replica *replica = flight->replica;
    const struct ifl_promise promised = replica->promise;
    const int rc = replica_plan(replica, now_ns, error);
    if (rc < 0)
        return rc;
    if (!replica_only_ticks(replica))
        return ifl_fail(error, IFL_E_POLICY,
                        "policy %s promised to repeat its step and planned another at %.9f s",
                        replica->modules[IFL_BATCHING].policy->name, ifl_s_from_ns(now_ns));
    replica->promise = promised;
    replica->promise.n_steps--;
    return 0;
}

static bool promise_covers(const struct replica *replica, int64_t now_ns)
{
    const struct ifl_promise *promise = &replica->promise;
    return promise->n_steps > 0 && now_ns <= promise->until_ns &&
           replica->kv.n_free - replica_growing_blocks(replica) >= promise->min_free_blocks;
}

static int plan_once(struct flight *flight, int64_t now_ns, struct ifl_error *error)
{
    struct replica *replica = flight->replica;
    if (flight->check_steady && promise_covers(replica, now_ns))
        return plan_promised(flight, now_ns, error);
    if (flight->steady_runs && !flight->check_steady && replica_repeat(replica, now_ns)) {
        flight->n_repeats++;
        return 0;
    }
    flight->n_plans++;
    return replica_plan(replica, now_ns, error);
}

/* Plans until there is work for the executor or nothing moves any more: a plan that only preempts
 * or rejects is followed by another at the same time. */
static int plan_step(struct flight *flight, int64_t now_ns, struct ifl_error *error)
{
    struct replica *replica = flight->replica;
    for (size_t n_tries = 0;; n_tries++) {
        int rc = plan_once(flight, now_ns, error);
        if (rc < 0)
            return rc;
        const bool moved = replica->n_rejected > 0 || replica->step.n_preempted > 0;
        const bool submits = replica_commit(replica);
        if (replica->n_gone > 0 && (rc = report_gone(flight, now_ns, error)) < 0)
            return rc;
        if (submits)
            return flight->executor->submit(flight->executor_self, &replica->desc, error);
        if (!moved || n_tries > replica->pool.n_live + 1)
            return 0;
    }
}

/* ---- the loop ---- */

static int stalled(const struct flight *flight, struct ifl_error *error)
{
    const struct replica *replica = flight->replica;
    return ifl_fail(error, IFL_E_STALLED,
                    "policy %s leaves %zu requests waiting, %zu running and %zu swapped out, and "
                    "nothing can happen any more",
                    replica->modules[IFL_BATCHING].policy->name, replica->waiting.n,
                    replica->running.n, replica->n_swapped);
}

static int end_step(struct flight *flight, const struct ifl_done *done, struct ifl_error *error)
{
    struct replica *replica = flight->replica;
    const int rc = replica_end(replica, done, flight->recorder, error);
    if (rc < 0 || replica->n_gone == 0)
        return rc;
    return report_gone(flight, done->end_ns, error);
}

/* Waits for whatever comes first. 1: *now_ns has moved; 0: nothing will ever come. */
static int advance(struct flight *flight, int64_t *now_ns, struct ifl_error *error)
{
    struct replica *replica = flight->replica;
    struct ifl_done done;
    int64_t until_ns = workload_next_ns(flight->workload);
    if (!replica->busy && replica->wake_ns < until_ns && replica->wake_ns > *now_ns)
        until_ns = replica->wake_ns;
    if (!replica->busy && until_ns == IFL_NEVER)
        return 0;
    const int rc = flight->executor->next(flight->executor_self, until_ns, &done, error);
    if (rc < 0)
        return rc;
    *now_ns = rc ? done.end_ns : until_ns;
    if (rc) {
        const int ended = end_step(flight, &done, error);
        return ended < 0 ? ended : 1;
    }
    return 1;
}

int flight_run(struct flight *flight, struct ifl_error *error)
{
    struct replica *replica = flight->replica;
    int64_t now_ns = 0;
    int rc;
    replica->wake_ns = IFL_NEVER;
    while ((rc = advance(flight, &now_ns, error)) > 0) {
        if (flight->stop && *flight->stop)
            return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
        if (workload_next_ns(flight->workload) <= now_ns)
            rc = let_arrive(flight, now_ns, error);
        if (rc >= 0 && !replica->busy && replica->pool.n_live > 0)
            rc = plan_step(flight, now_ns, error);
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && replica->pool.n_live > 0)
        return stalled(flight, error);
    return rc;
}
