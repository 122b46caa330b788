/* Rotations: the steps in flight of a pipeline repeat without an event. Each of these steps
 * consists only of decodes and has a promise (struct ifl_promise) that holds. When a step ends it
 * begins again with the same requests, and no plan is made. A turn changes only sums. The records
 * of requests stay as they were when the rotation began until it is closed, so that only the
 * functions below may read the replica meanwhile. */
#ifndef SIM_REPLICA_ROTATION_H
#define SIM_REPLICA_ROTATION_H

#include "replica/replica.h"

/* The smallest number of turns for which a rotation is begun. */
enum { ROTATION_LEAST_TURNS = 4 };

/* Call it after a plan that led to no step. If the plan changed nothing, the promises stay valid.
 */
void rotation_note_empty_plan(struct replica *replica);
/* Begins a rotation. Returns false, and changes nothing, if not all steps in flight may be
 * repeated, or only for a few turns. */
bool rotation_open(struct replica *replica);
/* True if the oldest step, which ends at end_ns, is promised to begin again, and so are the others
 * in flight. Asked by the checking mode, without a rotation. */
bool rotation_repeats(struct replica *replica, int64_t end_ns);
/* True if the promise has no bound, or one later than the end of any run. */
bool rotation_is_unbounded(const struct ifl_promise *promise);
/* True if the oldest step may begin again when it ends, provided that it ends by *until_ns. */
bool rotation_may_turn(const struct replica *replica, int64_t *until_ns);
/* Records the gaps and the row of the oldest step, which has ended. Returns 0 or the code of
 * `error`. */
int rotation_land(struct replica *replica, const struct ifl_done *done,
                  struct ifl_recorder *recorder, struct ifl_error *error);
/* The oldest step begins again. Returns its description for the executor. */
const struct ifl_step_desc *rotation_turn(struct replica *replica);
/* Ends the rotation and brings the records of the requests up to date. */
void rotation_close(struct replica *replica);

#endif
