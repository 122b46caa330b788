/* The step in flight: its description for the executor, its row of steps.csv, and the steps that
 * have ended but for which on_step_end has not been called yet.
 *
 * Several steps in flight (overlap.h) are a ring. A step is appended to it when it is committed,
 * and is copied back when it ends, to the fields that a single step in flight has. All requests of
 * such steps are in `planned`; none is in the cohort. Each of these steps keeps its own promise
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
    struct live_list *grow;  /* [block_tokens], GROWING: list i has the requests of the step that
                                lack a block in the turns i, i + block_tokens and so on */
    int64_t n_taken, n_left; /* turns since the rotation began; turns that the rotation may take in
                                all */
    int64_t last_end_ns, max_gap_ns;
};

/* A request that has left while several steps were in flight: the values for its remaining rows of
 * work.csv. */
struct left_work {
    size_t row;      /* in the trace */
    int32_t attempt; /* below 0: the request has its full answer and gets no further row */
    int32_t preemptions;
};

/* One of several steps in flight. */
struct flown {
    struct ifl_step_desc desc;
    struct ifl_step_record record;
    struct planned *planned; /* [n_planned]; r is NULL if the request has left since */
    size_t n_planned;
    struct ifl_work *work;
    struct left_work *left; /* [n_work]; entry i is valid if work[i].request is NULL */
    int32_t slot;
    struct ifl_promise promise; /* n_steps 0: the step has no promise */
    struct rounds rounds;
};

/* What modules are told of steps that have ended, with what `results` needs to answer. It outlives
 * the calls: a module that keeps the pointer breaks the contract, and does not crash. */
struct told_end {
    struct ifl_step_end pub; /* first: modules hold a pointer to it */
    struct replica *replica;
    bool listed;
};

struct in_flight {
    bool busy;       /* no further plan may be made before a step ends */
    bool ticks;      /* the cohort takes part in the step */
    bool only_ticks; /* only the cohort takes part: the next tick has the same description and
                        record, except for sums and times */
    struct ifl_step_desc desc;
    struct ifl_work *work;  /* only for executors that read it */
    struct left_work *left; /* as in struct flown */
    uint32_t *tables;       /* block tables of the sequences of groups */
    size_t n_tables, cap_tables;
    struct ifl_result *results; /* results of the steps that end, if a module asks for them */
    struct ifl_step_record record;
    const int32_t *n_accepted;  /* accepted guesses of the step that ends, if the executor reports
                                   them; else NULL */
    int32_t n_preempted_before; /* preemptions since the last step, by plans that led to no step */
    int64_t last_end_ns;        /* end of the previous step; IFL_NEVER before the first step */
    int64_t n_barren_steps;     /* steps since the last one that produced a token */

    struct flown *flown; /* [depth], a ring of n_flown from `oldest` on; NULL: depth is 1 */
    size_t depth, oldest, n_flown;
    int32_t next_slot, n_empty_slots; /* slots that were planned in vain since the last step */
    size_t n_promised; /* steps in a row, up to the last one, whose promises stand: since they were
                          planned, nothing but ends of steps has happened */

    /* steps that repeat one another */
    int64_t tick_ns;         /* duration of the last tick ended by in_flight_pass */
    bool tells;              /* some module has on_step_end */
    int32_t n_untold;        /* ticks that have ended, without a call of on_step_end yet */
    int64_t untold_start_ns; /* start of the first untold tick */
    struct told_end told;    /* the ends of the steps that modules were told of last */
    int64_t *ends_ns;        /* [REPLICA_LONGEST_RUN, or the length of a stretch if no module has
                                on_step_end], allocated with the first request: ends of the untold
                                ticks and of the steps that end now */
};

/* Where tell_modules puts what it tells. */
static inline struct told_end *in_flight_told(struct in_flight *in_flight)
{
    return &in_flight->told;
}
/* All modules have been told: a later call of `results` is one of `late`. */
static inline void in_flight_end_told(struct in_flight *in_flight,
                                      struct ifl_results (*late)(const struct ifl_step_end *))
{
    in_flight->told.pub.results = late;
}
/* Fills the fields that are the same in every description and every record. Call it once the arrays
 * of the plan are allocated. Returns 0 or IFL_E_NOMEM. */
int in_flight_create(struct replica *replica);
void in_flight_destroy(struct in_flight *in_flight);
/* Makes room for n requests in the arrays that the executor and the modules ask for. Returns 0 or
 * IFL_E_NOMEM. */
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

/* Where the sums of a step are written: the totals for its executor and its row of steps.csv. */
struct step_sums_of {
    struct ifl_step_totals *totals;
    struct ifl_step_record *record;
};

/* Fills the sums of the planned step. */
void in_flight_sum(struct replica *replica, struct step_sums_of *sums);
/* Notes that n sequences of the cohort give up as much K/V as they add. */
void in_flight_note_full(struct step_sums_of *sums, int32_t n);
/* Adds the guesses of the cohort's next tick to the totals. */
void in_flight_add_guesses(const struct replica *replica, struct ifl_step_totals *totals);

/* Turns the plan into a description. Call it before the counts of the requests advance. */
void in_flight_describe(struct replica *replica);
/* Fills the record, except its times, and marks the step as in flight. */
void in_flight_submit(struct replica *replica);
/* As in_flight_submit, for the next tick of a promise, which begins at now_ns. */
void in_flight_submit_tick(struct replica *replica, int64_t now_ns);

/* ---- several steps in flight ---- */

/* Appends the step submitted last to the ring of steps in flight. */
void in_flight_push(struct replica *replica);
/* Takes the oldest step off the ring, back into the fields of a single step, where it then ends. */
void in_flight_pull(struct replica *replica);
/* Notes that a plan was made. stands: every promise of a step in flight held when the plan began.
 */
static inline void in_flight_note_plan(struct in_flight *in_flight, bool stands)
{
    if (!stands)
        in_flight->n_promised = 0;
}
/* The i-th step in flight, counted from the oldest. */
struct flown *in_flight_at(struct in_flight *in_flight, size_t i);
/* The oldest step begins again, with one more token for each of its requests, as the last of the
 * ring. */
struct flown *in_flight_turn(struct replica *replica);
/* Call it after steps have begun again: in_flight->desc becomes the description of the last step.
 */
static inline void in_flight_settle(struct in_flight *in_flight)
{
    in_flight->desc = in_flight_at(in_flight, in_flight->n_flown - 1)->desc;
}
/* The description of the step that was committed last and has not ended. */
const struct ifl_step_desc *in_flight_last(const struct in_flight *in_flight);
/* Removes r from all steps in flight; what these steps compute for r is lost. */
void in_flight_drop(struct replica *replica, struct live_request *r);
/* Call it when a plan begins, with several steps in flight. Sets which requests the plan is not
 * shown, and from which pending tokens it may continue. */
void in_flight_open(struct replica *replica);
/* Call it after a plan that led to no step. Returns true if the plan of the next slot is due at
 * once. If all slots were tried in vain while no step is in flight, each slot is tried once more;
 * requests may then be dropped. */
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
/* waits: no further plan is to be made until one of the steps in flight ends. */
static inline void in_flight_wait(struct in_flight *in_flight, bool waits)
{
    in_flight->busy = in_flight->busy || (waits && in_flight->n_flown > 0);
}

/* ---- ending ---- */

/* Fills the times of the step in its record. */
void in_flight_stamp(struct in_flight *in_flight, const struct ifl_done *done);
/* Fills the times of the oldest of several steps, which has ended, in its record. The step stays in
 * the ring. */
static inline void in_flight_land(struct in_flight *in_flight, const struct ifl_done *done)
{
    in_flight->record = in_flight_at(in_flight, 0)->record;
    in_flight->n_barren_steps = 0;
    in_flight_stamp(in_flight, done);
}
/* Marks the step as ended. Returns the number of steps that modules are told of now: this step and
 * the untold ticks before it. */
int32_t in_flight_end(struct in_flight *in_flight, const struct ifl_done *done);
/* n_accepted: the accepted guesses that the executor reports; NULL if it reports none. */
static inline void in_flight_hear_accepted(struct in_flight *in_flight, const int32_t *n_accepted)
{
    in_flight->n_accepted = n_accepted;
}
/* Records that n guesses of the step were accepted. */
static inline void in_flight_note_accepted(struct in_flight *in_flight, int32_t n)
{
    in_flight->record.accepted_tokens = n;
}
/* The step has produced a token: the count of steps in a row without a token returns to 0. */
static inline void in_flight_note_token(struct in_flight *in_flight)
{
    in_flight->n_barren_steps = 0;
}
/* Lists the requests that got tokens in the last n_steps steps, each with its number of tokens.
 * Returns the number of entries. */
size_t in_flight_list_results(struct replica *replica, int32_t n_steps);

/* ---- ticks that end without an event ---- */

/* Notes the ends of the committed step and of the steps behind it, from their durations. Returns
 * how many of these steps may end without an event: a step must end before until_ns and, unless it
 * is the committed one, begin by promised_ns. */
size_t in_flight_foresee(struct in_flight *in_flight, const int64_t *duration_ns, size_t n,
                         int64_t until_ns, int64_t promised_ns);
static inline void in_flight_note_end(struct in_flight *in_flight, int64_t end_ns)
{
    ifl_assert(in_flight->n_untold < REPLICA_LONGEST_RUN);
    in_flight->ends_ns[in_flight->n_untold] = end_ns;
}
/* Ends the committed step and the n - 1 steps behind it, of which the last took last_ns. Their ends
 * must be noted already (in_flight_foresee). Returns the end of the last step. */
int64_t in_flight_pass(struct in_flight *in_flight, const struct ifl_done *first, size_t n,
                       int64_t last_ns);
/* Notes that on_step_end has been called for all steps. */
static inline void in_flight_tell(struct in_flight *in_flight)
{
    in_flight->n_untold = 0;
}

#endif
