/* The end of a step in the loop: the step's row, the requests that end with it, and their rows. */
#include "inflight/minmax.h"
#include "run/flight_loop.h"

/* ---- requests that end ---- */

/* A client has its last token later than the engine; no token comes behind another end. */
static int64_t ended_for_client_ns(const struct loop *loop, const struct live_request *r)
{
    const bool by_token = r->pub.stale.n_out == r->n_output;
    const int64_t after_ns = by_token ? loop->flight->workload->token_ns : 0;
    return ifl_later_ns(loop->now_ns, after_ns);
}

IFL_HOT int loop_report_one(struct loop *loop, const struct replica *replica,
                            const struct live_request *r, struct ifl_error *error)
{
    struct flight *flight = loop->flight;
    struct ifl_request_record record;
    if (IFL_RARE(r->silent) || (IFL_RARE(r->handover > 0) && moves_fails_prompt(loop->moves, r)))
        return 0;
    replica_report(replica, r, &record);
    if (IFL_RARE(r->handover > 0))
        moves_report(loop->moves, r, &record);
    if (IFL_RARE(flight->executor->forget != NULL))
        flight->executor->forget(flight->executor_self, r->pub.serial);
    record.request_id = workload_id(flight->workload, r->row, r->attempt);
    record.is_retry = workload_is_retry(flight->workload, r->row, r->attempt);
    record.left_ns = loop->now_ns;
    workload_deliver(flight->workload, &record);
    int rc = ifl_record_request(flight->recorder, &record, error);
    outside_tell_end(flight, r->row, &record, loop->now_ns);
    if (rc == 0)
        rc = workload_ended(flight->workload, r->row, r->pub.serial, r->attempt, record.status,
                            ended_for_client_ns(loop, r), error);
    routing_tell_end(&loop->routing, replica, r, loop->now_ns);
    return rc;
}

int loop_report_early(struct loop *loop, const struct replica *replica, struct live_request *r,
                      struct ifl_error *error)
{
    const int rc = loop_report_one(loop, replica, r, error);
    r->silent = true;
    return rc;
}

IFL_HOT int loop_report_gone(struct loop *loop, struct replica *replica, struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < replica->leaving.n_gone && rc == 0; i++) {
        const struct live_request *r = replica->leaving.gone[i];
        rc = loop_report_one(loop, replica, r, error);
        if (IFL_RARE(r->handover > 0) && rc == 0)
            rc = moves_forget(loop->moves, replica, r, error);
    }
    loop->asks_held = loop->asks_held || replica->leaving.n_gone > 0;
    loop_count_ended(loop, replica->leaving.n_gone);
    replica_recycle(replica);
    return rc;
}

int loop_note_gone(struct loop *loop, struct replica *replica, struct ifl_error *error)
{
    loop_note_change(loop, replica);
    const int rc = replica->leaving.n_gone > 0 ? loop_report_gone(loop, replica, error) : 0;
    return rc == 0 ? loop_let_step_go(loop, replica, error) : rc;
}

/* ---- the end of a step ---- */

static struct left_work request_of(const struct in_flight *in_flight, size_t i)
{
    const struct ifl_request *request = in_flight->work[i].request;
    return request ? (struct left_work){live(request)->row, live(request)->attempt,
                                        request->n_preempted}
                   : in_flight->left[i];
}

/* Where the step that the request resumed with ends. */
static int record_stall(const struct flight *flight, uint64_t request_id, struct live_request *r,
                        struct ifl_error *error)
{
    const struct ifl_stall_record stall = {request_id, r->stall_began_ns, r->stall_ended_ns,
                                           r->stalled_on_host};
    r->stall_ended_ns = IFL_NEVER;
    return ifl_record_stall(flight->recorder, &stall, error);
}

/* Records what the step did for each sequence, for work.csv and the timeline. Reads
 * replica->in_flight.work, not desc.work, which is for the executor at submission: arrivals since
 * may have moved the array. */
IFL_APART static int record_work(const struct flight *flight, const struct replica *replica,
                                 const struct ifl_done *done, struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < replica->in_flight.desc.n_work && rc == 0; i++) {
        const struct ifl_work *work = &replica->in_flight.work[i];
        const struct left_work of = request_of(&replica->in_flight, i);
        if (of.attempt < 0)
            continue;
        const struct ifl_work_record record = {
            .step = replica->in_flight.desc.step,
            .request_id = workload_id(flight->workload, of.row, of.attempt),
            .start_ns = done->start_ns,
            .duration_ns = done->end_ns - done->start_ns,
            .replica = (int32_t)replica->fixed.number,
            .prefill_tokens = work->decodes ? 0 : work->n_new,
            .decode_tokens = work->decodes ? work->n_new : 0,
            .context_tokens = work->n_context,
            .preemptions = of.preemptions,
        };
        if (work->request && live(work->request)->stall_ended_ns != IFL_NEVER)
            rc = record_stall(flight, record.request_id, live(work->request), error);
        if (rc == 0)
            rc = ifl_record_work(flight->recorder, &record, error);
    }
    return rc;
}

int loop_record_stages(const struct loop *loop, const struct replica *replica,
                       const struct ifl_done *done, struct ifl_error *error)
{
    int rc = 0;
    for (int32_t s = 0; s < done->stages->n && rc == 0; s++) {
        const struct ifl_stage_record record = {
            .step = done->step,
            .replica = (int32_t)replica->fixed.number,
            .pipeline = (int32_t)done->stages->pipeline,
            .stage = s,
            .n_stages = done->stages->n,
            .start_ns = done->stages->of[s].start_ns,
            .end_ns = done->stages->of[s].end_ns,
        };
        rc = ifl_record_stage(loop->flight->recorder, &record, error);
    }
    return rc;
}

bool loop_tells_steps(const struct loop *loop)
{
    return loop->routing.router || loop->places || loop->flight->records_work || loop->carries;
}

IFL_HOT static int tell_end(struct loop *loop, struct replica *replica, const struct ifl_done *done,
                            struct ifl_error *error)
{
    int rc = 0;
    routing_tell_first_tokens(&loop->routing, replica);
    if (loop->places)
        outside_tell_step(loop, replica, done);
    if (done->stages)
        rc = loop_record_stages(loop, replica, done, error);
    if (rc == 0 && loop->flight->records_work)
        rc = record_work(loop->flight, replica, done, error);
    if (rc == 0 && replica->leaving.n_gone > 0)
        rc = loop_report_gone(loop, replica, error);
    if (rc == 0 && loop->tiering)
        rc = tiering_hear_step(loop->tiering, replica, error);
    if (rc == 0 && loop->swapping)
        swapping_hear_step(loop->swapping, replica, done);
    if (rc == 0 && loop->migrating)
        rc = migrating_hear_step(loop->migrating, replica, error);
    return rc == 0 && loop->moves ? moves_hear_step(loop->moves, replica, done, error) : rc;
}

IFL_APART int loop_end(struct loop *loop, struct replica *replica, const struct ifl_done *done,
                       struct ifl_error *error)
{
    const int rc = replica_end(replica, done, loop->flight->recorder, error);
    loop->now_ns = done->end_ns;
    if (IFL_RARE(rc < 0))
        return rc;
    if (IFL_RARE(loop->tells_steps || done->stages))
        return tell_end(loop, replica, done, error);
    return replica->leaving.n_gone > 0 ? loop_report_gone(loop, replica, error) : 0;
}

int loop_check_contract(const struct loop *loop, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    for (uint32_t i = 0; i < flight->n_replicas; i++)
        if (flight->replicas[i].plan.broken) {
            *error = flight->replicas[i].plan.error;
            return error->code;
        }
    return 0;
}
