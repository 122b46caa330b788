/* Steps of a pipeline that begin again when they end, without a plan. */
#include <string.h>

#include "cost/stages.h"
#include "inflight/minmax.h"
#include "replica/rotation.h"
#include "run/flight_loop.h"

/* Turns after which the loop looks at signals. */
enum { MOST_TURNS = 4096 };

bool loop_may_rotate(const struct loop *loop)
{
    const struct flight *flight = loop->flight;
    return flight->n_replicas == 1 && !flight->router && !loop->lone && !loop->places &&
           !loop->carries && !flight->records_work && flight->executor->durations &&
           replica_overlaps(&flight->replicas[0]) && flight->steady_runs && !flight->check_steady;
}

/* A step that has ended, with what the executor lends until it is called again. */
struct ended {
    struct ifl_done done;
    struct ifl_stage_times stages;
    struct ifl_stage_time of[STAGES_MOST];
};

static int next_end(const struct flight *flight, int64_t until_ns, struct ended *ended,
                    struct ifl_error *error)
{
    struct ifl_done *done = &ended->done;
    const int rc = flight->executor->next(flight->executor_self, until_ns, done, error);
    if (rc <= 0 || !done->stages)
        return rc;
    ended->stages = *done->stages;
    memcpy(ended->of, done->stages->of, (size_t)done->stages->n * sizeof *ended->of);
    ended->stages.of = ended->of;
    done->stages = &ended->stages;
    return rc;
}

static int end_one(struct loop *loop, struct replica *replica, const struct ifl_done *done,
                   struct ifl_error *error)
{
    loop->n_busy--;
    return loop_end(loop, replica, done, error);
}

/* Steps that end at the same time: a plan is made for the requests of all. */
static int end_both(struct loop *loop, struct replica *replica, const struct ended *first,
                    struct ended *other, struct ifl_error *error)
{
    int rc = end_one(loop, replica, &first->done, error), more = 1;
    while (rc == 0 && more > 0) {
        rc = end_one(loop, replica, &other->done, error);
        more = next_end(loop->flight, first->done.end_ns, other, error);
    }
    return rc < 0 ? rc : more;
}

static int turn(struct loop *loop, struct replica *replica, const struct ifl_done *done,
                struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    int rc = rotation_land(replica, done, flight->recorder, error);
    loop->now_ns = done->end_ns;
    if (rc == 0 && done->stages)
        rc = loop_record_stages(loop, replica, done, error);
    if (rc == 0)
        rc = flight->executor->submit(flight->executor_self, rotation_turn(replica), error);
    loop->flight->n_repeats += rc == 0;
    return rc;
}

int loop_rotate(struct loop *loop, struct replica *replica, int64_t until_ns,
                struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    struct ended first, other;
    int64_t promised_ns;
    int rc = 1, n_others = 0;
    if (!rotation_open(replica))
        return 0;
    for (int n = 0; n < MOST_TURNS && rc > 0 && rotation_may_turn(replica, &promised_ns); n++) {
        rc = next_end(flight, ifl_min(until_ns - 1, promised_ns), &first, error);
        if (rc > 0)
            n_others = next_end(flight, first.done.end_ns, &other, error);
        if (rc <= 0 || n_others != 0)
            break;
        rc = turn(loop, replica, &first.done, error);
        rc = rc < 0 ? rc : 1;
    }
    rotation_close(replica);
    if (n_others > 0)
        return end_both(loop, replica, &first, &other, error);
    return ifl_min(rc, n_others);
}
