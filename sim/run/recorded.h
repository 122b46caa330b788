/* Replays the steps of a recorded run, one after the other.
 *
 * A step that is planned as recorded begins no earlier than the recorded step and ends when the
 * recorded step ended, so the host's time between two steps is included. If it begins after the
 * recorded end, it takes as long as the recorded step.
 *
 * For a step that is planned otherwise, an equal step is searched among the next
 * RECORDED_LOOK_AHEAD recorded ones.
 *   - If there is one, the recorded steps before it count as `unplanned`.
 *   - Else, if the next recorded step is its counterpart, the two are compared. A counterpart
 *     computes tokens of a request at the same place. In a recording that has only sums, a
 *     counterpart begins at most its own duration after the time at which the planned step may
 *     begin.
 *   - Else the planned step is `extra`, and the next recorded step stays next. An extra step takes
 *     as long as the next recorded one, or as the last one.
 * With OTHERWISE_PREDICTED a step without an equal one takes the time that the predictor gives. */
#ifndef SIM_RUN_RECORDED_H
#define SIM_RUN_RECORDED_H

#include "inflight/executor.h"
#include "inflight/report.h"
#include "inflight/trace.h"

#include "cost/cost.h"
#include "cost/step_log.h"

enum recorded_otherwise { OTHERWISE_FAIL, OTHERWISE_RECORDED, OTHERWISE_PREDICTED };

enum { RECORDED_LOOK_AHEAD = 64 };

struct recorded_options {
    const char *name; /* for step_log_read */
    enum recorded_otherwise otherwise;
    struct cost *predictor;        /* borrowed; durations of steps that are planned otherwise */
    const struct ifl_trace *trace; /* borrowed; request ids are looked up in it */
    struct ifl_recorder *recorder; /* borrowed; records the differences; NULL: they are not
                                      recorded */
};

struct recorded_counts {
    uint64_t n_steps;     /* planned steps */
    uint64_t n_otherwise; /* of these, steps planned otherwise than recorded, extra ones included */
    uint64_t n_unplanned; /* recorded steps between two planned ones that were not planned */
    uint64_t n_left;      /* recorded steps after the last planned one */
};

struct recorded; /* opaque */

struct recorded *recorded_create(const struct recorded_options *options, struct ifl_error *error);
void recorded_destroy(struct recorded *recorded); /* accepts NULL */

/* Replays the next step of a replica, which may begin at earliest_ns. `desc` must list the step's
 * work. Returns 0 or the code of `error`; with OTHERWISE_FAIL a step planned otherwise is an error.
 */
int recorded_step(struct recorded *recorded, const struct ifl_step_desc *desc, int64_t earliest_ns,
                  int64_t *start_ns, int64_t *duration_ns, struct ifl_error *error);

struct recorded_counts recorded_counts(const struct recorded *recorded);

#endif
