/* The step in flight: its description for the executor, its row of steps.csv, and the steps that
 * have ended and of which no module has been told yet.
 *
 * Several steps in flight (overlap.h) are a ring. A step is appended to it when it is committed,
 * and is copied back when it ends, to the fields that a single step in flight has. All requests of
 * such steps are in `planned`; none is in the cohort. The promise of such a step is kept with it
 * (rotation.c). */
#ifndef SIM_REPLICA_IN_FLIGHT_H
#define SIM_REPLICA_IN_FLIGHT_H

#include "inflight/executor.h"
#include "inflight/policy.h"
#include "inflight/report.h"

struct live_list;
struct live_request;
struct planned;
struct replica;

/* Most steps in one call of on_step_end. */
enum { REPLICA_LONGEST_RUN = 1024 };

/* A step in flight that begins again as often as it ends (rotation.c). */
struct rounds {
    struct live_list *grow;  /* [block_tokens], GROWING: its requests that lack a block in turn i,
                                i + block_tokens and so on, of one list */
    int64_t n_taken, n_left; /* since the rotation began; those that may be taken in all */
    int64_t last_end_ns, max_gap_ns;
};

/* A request that has left while several steps were in flight, and what the rest of its rows of
 * work.csv says. */
struct left_work {
    size_t row;      /* in the trace */
    int32_t attempt; /* below 0: it has its answer, and no row */
    int32_t preemptions;
};

/* One of several steps in flight. */
struct flown {
    struct ifl_step_desc desc;
    struct ifl_step_record record;
    struct planned *planned; /* [n_planned]; r is NULL where it has left since */
    size_t n_planned;
    struct ifl_work *work;
    struct left_work *left; /* [n_work], where the request of `work` is NULL */
    int32_t slot;
    struct ifl_promise promise; /* n_steps 0: none */
    struct rounds rounds;
};

struct in_flight {
    bool busy;       /* no further plan may be made before a step ends */
    bool ticks;      /* the cohort takes part in it */
    bool only_ticks; /* and nothing else: the next tick has the same description and record, but for
                        sums and times */
    struct ifl_step_desc desc;
    struct ifl_work *work;  /* only for executors that read it */
    struct left_work *left; /* as in struct flown */
    uint32_t *tables;       /* block tables of the sequences of groups */
    size_t n_tables, cap_tables;
    struct ifl_result *results; /* of the steps that end, if a module asks for them */
    struct ifl_step_record record;
    const int32_t *n_accepted;  /* of the step that ends, as the executor says; NULL: it does not */
    int32_t n_preempted_before; /* by plans that led to no step since the last one */
    int64_t last_end_ns;        /* of the step before, IFL_NEVER before the first */
    int64_t n_barren_steps;     /* steps since the last one that produced a token */

    struct flown *flown; /* [depth], a ring of n_flown from `oldest` on; NULL: depth is 1 */
    size_t depth, oldest, n_flown;
    int32_t next_slot, n_empty_slots; /* slots that were planned in vain since the last step */
    size_t n_promised; /* steps in a row, the last one included, that stand as promised: nothing has
                          happened since they were planned but that steps ended */

    /* steps that repeat one another */
    int64_t tick_ns;         /* duration of the last tick that coasted */
    bool tells;              /* some module has on_step_end */
    int32_t n_untold;        /* ticks that have ended, without a call of on_step_end yet */
    int64_t untold_start_ns; /* start of the first of them */
    int64_t *ends_ns; /* [REPLICA_LONGEST_RUN, or a stretch if none is told of], from the first
                         request on: of the untold ticks, and of the steps that end now */
};

/* Fills what is the same in every description and every record. Call it once the arrays of the plan
 * are there. 0, or IFL_E_NOMEM. */
int in_flight_create(struct replica *replica);
void in_flight_destroy(struct in_flight *in_flight);
/* Room for n requests in the arrays that executor and modules ask for. 0, or IFL_E_NOMEM. */
int in_flight_reserve(struct replica *replica, size_t n);

/* ---- committing ---- */

static inline void in_flight_set_ticks(struct in_flight *in_flight, bool ticks)
{
    in_flight->ticks = ticks;
}
/* A plan led to no step: its preemptions are recorded with the next one. */
static inline void in_flight_keep_preempted(struct in_flight *in_flight, int32_t n)
{
    in_flight->n_preempted_before += n;
}
static inline int32_t in_flight_take_preempted(struct in_flight *in_flight)
{
    const int32_t n = in_flight->n_preempted_before;
    in_flight->n_preempted_before = 0;
    return n;
}
/* ---- in_flight_sums.c: of the description ---- */

/* Where the sums of a step go: to its executor, and to its row of steps.csv. */
struct step_sums_of {
    struct ifl_step_totals *totals;
    struct ifl_step_record *record;
};

/* The sums of what is planned. */
void in_flight_sum(struct replica *replica, struct step_sums_of *sums);
/* n sequences of the cohort give up as much K/V as they add. */
void in_flight_note_full(struct step_sums_of *sums, int32_t n);
/* The guesses of the cohort's next tick. */
void in_flight_add_guesses(const struct replica *replica, struct ifl_step_totals *totals);

/* Turns the plan into a description; requests have not advanced yet. */
void in_flight_describe(struct replica *replica);
/* Fills the record, but for its times, and puts the step down as under way. */
void in_flight_submit(struct replica *replica);
/* The same for the next tick of a promise, which begins at now_ns. */
void in_flight_submit_tick(struct replica *replica, int64_t now_ns);

/* ---- several steps in flight ---- */

/* The step submitted last goes behind those in flight. */
void in_flight_push(struct replica *replica);
/* The oldest step comes back, to end. */
void in_flight_pull(struct replica *replica);
/* A plan was made; stands: no promise was void when it began. */
static inline void in_flight_note_plan(struct in_flight *in_flight, bool stands)
{
    if (!stands)
        in_flight->n_promised = 0;
}
/* i from the oldest step on. */
struct flown *in_flight_at(struct in_flight *in_flight, size_t i);
/* It begins again, with a token more for each request, behind all others. */
struct flown *in_flight_turn(struct replica *replica);
/* Steps have begun again: the description is that of the last one. */
static inline void in_flight_settle(struct in_flight *in_flight)
{
    in_flight->desc = in_flight_at(in_flight, in_flight->n_flown - 1)->desc;
}
/* The description of the step that was committed last and has not ended. */
const struct ifl_step_desc *in_flight_last(const struct in_flight *in_flight);
/* r leaves all steps in flight: what they compute for it is lost. */
void in_flight_drop(struct replica *replica, struct live_request *r);
/* Which requests the next plan is not shown, and which tokens it may go on from. */
void in_flight_open(struct replica *replica);
/* A plan has led to no step. True: that of the next slot is due. If all slots were tried and no
 * step is in flight they are tried again: now requests may be given up. */
bool in_flight_try_next_slot(struct replica *replica);
static inline bool in_flight_may_give_up(const struct in_flight *in_flight, bool slots)
{
    return in_flight->n_flown == 0 &&
           (!slots || in_flight->n_empty_slots >= (int32_t)in_flight->depth);
}
static inline void in_flight_note_moved(struct in_flight *in_flight)
{
    in_flight->n_empty_slots = 0;
}
/* Nothing can be planned beside the steps in flight. */
static inline void in_flight_wait(struct in_flight *in_flight, bool waits)
{
    in_flight->busy = in_flight->busy || (waits && in_flight->n_flown > 0);
}

/* ---- ending ---- */

/* The times of the step, in its record. */
void in_flight_stamp(struct in_flight *in_flight, const struct ifl_done *done);
/* The oldest of several steps has ended, and its row has its times; it stays where it is. */
static inline void in_flight_land(struct in_flight *in_flight, const struct ifl_done *done)
{
    in_flight->record = in_flight_at(in_flight, 0)->record;
    in_flight->n_barren_steps = 0;
    in_flight_stamp(in_flight, done);
}
/* The step has ended. Returns how many steps modules are told of with it. */
int32_t in_flight_end(struct in_flight *in_flight, const struct ifl_done *done);
/* The executor's numbers of accepted guesses; NULL: it gives none. */
static inline void in_flight_hear_accepted(struct in_flight *in_flight, const int32_t *n_accepted)
{
    in_flight->n_accepted = n_accepted;
}
/* So many guesses of the step have held. */
static inline void in_flight_note_accepted(struct in_flight *in_flight, int32_t n)
{
    in_flight->record.accepted_tokens = n;
}
/* The step has produced a token, so that the run comes to an end. */
static inline void in_flight_note_token(struct in_flight *in_flight)
{
    in_flight->n_barren_steps = 0;
}
/* Lists which requests got how many tokens in the last n_steps steps. Returns the number of
 * entries. */
size_t in_flight_list_results(struct replica *replica, int32_t n_steps);

/* ---- ticks that end without an event ---- */

/* Notes the ends of the committed step and of those behind it, from their durations. Returns how
 * many of them end before until_ns and, apart from the committed one, begin by promised_ns. */
size_t in_flight_foresee(struct in_flight *in_flight, const int64_t *duration_ns, size_t n,
                         int64_t until_ns, int64_t promised_ns);
static inline void in_flight_note_end(struct in_flight *in_flight, int64_t end_ns)
{
    ifl_assert(in_flight->n_untold < REPLICA_LONGEST_RUN);
    in_flight->ends_ns[in_flight->n_untold] = end_ns;
}
/* Ends the committed step and n - 1 behind it, the last of which took last_ns. Their ends are noted
 * already. Returns the end of the last one. */
int64_t in_flight_pass(struct in_flight *in_flight, const struct ifl_done *first, size_t n,
                       int64_t last_ns);
/* Modules have been told of all steps. */
static inline void in_flight_tell(struct in_flight *in_flight)
{
    in_flight->n_untold = 0;
}

#endif
