/* Replays the steps of a recorded run, one after the other.
 *
 * A step that is planned as recorded begins no earlier than the recorded one and ends when that
 * ended, so the host's time between two steps is included. If it begins after the recorded end it
 * takes as long as the recorded step.
 *
 * For a step that is planned otherwise, an equal step is searched among the next
 * RECORDED_LOOK_AHEAD recorded ones.
 *   - If there is one, the recorded steps before it count as `unplanned`.
 *   - Else, if the next recorded step is its counterpart, it is compared with that. A counterpart
 *     computes tokens of a request at the same place. In a recording of sums alone it begins at
 *     most its own length behind the time at which the planned step may begin.
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
    struct cost *predictor;        /* borrowed; of steps that are planned otherwise */
    const struct ifl_trace *trace; /* borrowed; numbers of its requests */
    struct ifl_recorder *recorder; /* borrowed; takes the differences, NULL: nothing does */
};

struct recorded_counts {
    uint64_t n_steps;     /* planned */
    uint64_t n_otherwise; /* of them, planned otherwise than recorded; extra ones included */
    uint64_t n_unplanned; /* recorded, between two that were planned */
    uint64_t n_left;      /* recorded, behind the last that was planned */
};

struct recorded; /* opaque */

struct recorded *recorded_create(const struct recorded_options *options, struct ifl_error *error);
void recorded_destroy(struct recorded *recorded); /* accepts NULL */

/* The next step of a replica, which may begin at earliest_ns. `desc` has its work. A step planned
 * otherwise is an error with OTHERWISE_FAIL. */
int recorded_step(struct recorded *recorded, const struct ifl_step_desc *desc, int64_t earliest_ns,
                  int64_t *start_ns, int64_t *duration_ns, struct ifl_error *error);

struct recorded_counts recorded_counts(const struct recorded *recorded);

#endif
