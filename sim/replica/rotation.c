#include "replica/rotation.h"

#include <string.h>

#include "inflight/minmax.h"
#include "replica/replica_parts.h"

void rotation_note_empty_plan(struct replica *replica)
{
    const struct ifl_step *step = &replica->plan.step;
    const bool changed = step->n_started + step->n_preempted + step->n_swapped_in > 0 ||
                         replica->plan.n_rejected > 0;
    if (!changed && replica->in_flight.n_promised > 0)
        plan_promise(&replica->plan, (struct ifl_promise){.n_steps = 1});
}

/* ---- opening ---- */

/* Where a further step may be in flight, a plan for it follows each turn: it must have nothing to
 * schedule. Decodes on tokens that are not known yet go on a number of steps later, so that their
 * steps may not be fewer than the stages. */
static bool leaves_no_room(const struct replica *replica)
{
    const struct overlap *overlap = &replica->fixed.overlap;
    const struct in_flight *in_flight = &replica->in_flight;
    if (overlap->request == OVERLAP_TOKENS && overlap->depth > overlap->n_stages)
        return false;
    return in_flight->n_flown == in_flight->depth ||
           replica->here.waiting.n + replica->here.n_swapped == 0;
}

/* All steps in flight are promised, and nothing else is due. */
static bool all_stand(const struct replica *replica)
{
    const struct in_flight *in_flight = &replica->in_flight;
    const struct leaving *leaving = &replica->leaving;
    return in_flight->n_flown > 0 && in_flight->n_promised >= in_flight->n_flown &&
           replica->fixed.plain && replica->kv.device.tallied && !replica->kv.device.contiguous &&
           leaving->n_ended + leaving->n_early + leaving->n_gone == 0 && leaves_no_room(replica);
}

static bool may_open(const struct replica *replica)
{
    return all_stand(replica) && replica->on.step_end.n == 0 &&
           replica->in_flight.n_preempted_before == 0;
}

static bool is_alone_in_step(const struct planned *p)
{
    const struct live_request *r = p->r;
    return r && r->pub.state == IFL_RUNNING && p->decodes && p->samples && p->n == 1 &&
           r->pub.n_in_flight == 1 && r->n_late == 1 && r->pub.n_seqs == 1 && !r->hands_over &&
           r->stalled_since_ns == IFL_NEVER && r->pub.first_token_ns != IFL_NEVER;
}

/* Turn i, counted from 0, takes a block for each request that has room for the tokens of i turns.
 * Those with a block in reserve take none as long as that lasts. */
static bool open_step(struct replica *replica, struct flown *flown, int64_t least_turns)
{
    const int32_t block_tokens = replica->fixed.limits.block_tokens;
    struct rounds *rounds = &flown->rounds;
    *rounds = (struct rounds){.grow = rounds->grow, .n_left = INT64_MAX};
    memset(rounds->grow, 0, (size_t)block_tokens * sizeof *rounds->grow);
    for (size_t i = 0; i < flown->n_planned; i++) {
        struct live_request *r = flown->planned[i].r;
        if (!is_alone_in_step(&flown->planned[i]))
            return false;
        const int32_t n_room = r->pub.stale.n_blocks * block_tokens - live_slots(r);
        rounds->n_left = ifl_min(rounds->n_left, (int64_t)r->n_output - r->pub.stale.n_out - 1);
        if (n_room >= block_tokens) {
            rounds->n_left = ifl_min(rounds->n_left, (int64_t)n_room);
            continue;
        }
        r->links[GROWING] = (struct live_link){NULL, NULL};
        live_append(&rounds->grow[n_room], GROWING, r);
    }
    return rounds->n_left >= least_turns;
}

bool rotation_is_unbounded(const struct ifl_promise *promise)
{
    return promise->n_steps >= REPLICA_LONGEST_RUN - 1; /* replica.c, bound_promise */
}

/* All requests on the device are in the steps in flight, each of which can be repeated so often. */
static bool open_steps(struct replica *replica, int64_t least_turns)
{
    struct in_flight *in_flight = &replica->in_flight;
    size_t n = 0;
    for (size_t i = 0; i < in_flight->n_flown; i++)
        n += in_flight_at(in_flight, i)->n_planned;
    if (n != replica->here.running.n)
        return false;
    for (size_t i = 0; i < in_flight->n_flown; i++)
        if (!open_step(replica, in_flight_at(in_flight, i), least_turns))
            return false;
    return true;
}

bool rotation_open(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    if (!may_open(replica))
        return false;
    for (size_t i = 0; i < in_flight->n_flown; i++)
        if (!rotation_is_unbounded(&in_flight_at(in_flight, i)->promise))
            return false;
    return open_steps(replica, ROTATION_LEAST_TURNS);
}

/* The step that would begin now is one of so many that are promised. */
static bool is_among_promised(const struct replica *replica, const struct flown *flown)
{
    const uint64_t n_since = ifl_next_step(&replica->view) - flown->desc.step;
    return rotation_is_unbounded(&flown->promise) || n_since <= (uint64_t)flown->promise.n_steps;
}

bool rotation_repeats(struct replica *replica, int64_t end_ns)
{
    int64_t until_ns;
    return replica->plan.promise.n_steps > 0 && all_stand(replica) && open_steps(replica, 1) &&
           is_among_promised(replica, in_flight_at(&replica->in_flight, 0)) &&
           rotation_may_turn(replica, &until_ns) && end_ns <= until_ns;
}

/* ---- turns ---- */

static const struct live_list *growing(const struct replica *replica, const struct rounds *rounds)
{
    return &rounds->grow[rounds->n_taken % replica->fixed.limits.block_tokens];
}

bool rotation_may_turn(const struct replica *replica, int64_t *until_ns)
{
    const struct flown *oldest = &replica->in_flight.flown[replica->in_flight.oldest];
    const int32_t n_new = (int32_t)growing(replica, &oldest->rounds)->n;
    *until_ns = oldest->promise.until_ns;
    return oldest->rounds.n_taken < oldest->rounds.n_left &&
           replica_tick_fits(replica, n_new, oldest->promise.min_free_blocks) &&
           !replica_tick_may_lose_hits(replica, n_new);
}

/* With the first turn each request may have a gap of its own. */
static int record_gaps(struct flown *flown, int64_t end_ns, struct ifl_recorder *recorder,
                       struct ifl_error *error)
{
    struct rounds *rounds = &flown->rounds;
    int rc = 0;
    if (rounds->n_taken > 0) {
        const int64_t gap_ns = end_ns - rounds->last_end_ns;
        rounds->max_gap_ns = ifl_max(rounds->max_gap_ns, gap_ns);
        return ifl_record_gaps(recorder, gap_ns, (int64_t)flown->n_planned, error);
    }
    for (size_t i = 0; i < flown->n_planned && rc == 0; i++) {
        struct live_request *r = flown->planned[i].r;
        const int64_t gap_ns = end_ns - r->last_token_ns;
        r->max_itl_ns = ifl_max(r->max_itl_ns, gap_ns);
        rc = ifl_record_gaps(recorder, gap_ns, 1, error);
    }
    return rc;
}

int rotation_land(struct replica *replica, const struct ifl_done *done,
                  struct ifl_recorder *recorder, struct ifl_error *error)
{
    struct flown *oldest = in_flight_at(&replica->in_flight, 0);
    ifl_assert(done->step == oldest->desc.step);
    const int rc = record_gaps(oldest, done->end_ns, recorder, error);
    oldest->rounds.last_end_ns = done->end_ns;
    in_flight_land(&replica->in_flight, done);
    view_end(&replica->view, 1, done->end_ns);
    return rc < 0 ? rc : ifl_record_step(recorder, &replica->in_flight.record, error);
}

/* What the view says of a plan, since hooks may read it. */
static void view_plan(struct replica *replica, const struct flown *flown)
{
    view_open(&replica->view, &replica->here, &replica->kv);
    if (overlap_counts_shown(&replica->fixed.overlap))
        view_count_shown(&replica->view, flown->n_planned);
}

const struct ifl_step_desc *rotation_turn(struct replica *replica)
{
    struct flown *oldest = in_flight_at(&replica->in_flight, 0);
    view_plan(replica, oldest);
    FOR_EACH_LIVE (r, growing(replica, &oldest->rounds), GROWING)
        (void)replica_take_blocks(replica, r, 1);
    oldest->rounds.n_taken++;
    accounts_add_tokens(&replica->kv, (int64_t)oldest->n_planned);
    struct flown *youngest = in_flight_turn(replica);
    view_submit(&replica->view);
    return &youngest->desc;
}

/* ---- closing ---- */

static void catch_up(const struct flown *flown, struct planned *p)
{
    const struct rounds *rounds = &flown->rounds;
    struct live_request *r = p->r;
    struct ifl_counts *counts = &r->pub.stale;
    const int32_t n = (int32_t)rounds->n_taken;
    counts->n_computed += n;
    counts->n_tokens += n;
    counts->n_out += n;
    counts->last_end_ns = r->last_token_ns = rounds->last_end_ns;
    p->n_computed += n;
    r->n_steps += n;
    r->max_itl_ns = ifl_max(r->max_itl_ns, rounds->max_gap_ns);
    r->last_step = flown->desc.step;
    r->looked_up = 0;
}

void rotation_close(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    for (size_t i = 0; i < in_flight->n_flown; i++) {
        const struct flown *flown = in_flight_at(in_flight, i);
        for (size_t k = 0; flown->rounds.n_taken > 0 && k < flown->n_planned; k++)
            catch_up(flown, &flown->planned[k]);
    }
    in_flight_settle(in_flight);
}
