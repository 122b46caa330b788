/* Rotations: the steps in flight of a pipeline repeat without an event. Each consists of decodes
 * alone and has a promise (struct ifl_promise) that stands; as it ends it begins again with the
 * same requests, and no plan is made. A step changes sums only. The records of requests stay as
 * they were at the beginning of the rotation until it ends, so that only these functions may read
 * the replica meanwhile. */
#ifndef SIM_REPLICA_ROTATION_H
#define SIM_REPLICA_ROTATION_H

#include "replica/replica.h"

/* Turns of a rotation that is worth to be begun. */
enum { ROTATION_LEAST_TURNS = 4 };

/* A plan has led to no step: unless it has changed something, promises stand. */
void rotation_note_empty_plan(struct replica *replica);
/* A rotation begins. False, and nothing has changed: the steps in flight may not all be repeated,
 * or only for a few turns. */
bool rotation_open(struct replica *replica);
/* Without a rotation: the oldest step, which ends at end_ns, is promised to begin again, and so are
 * the others in flight. */
bool rotation_repeats(struct replica *replica, int64_t end_ns);
/* The promise has no bound, or a later one than any run. */
bool rotation_is_unbounded(const struct ifl_promise *promise);
/* The oldest step may begin again when it ends, if that is by *until_ns. */
bool rotation_may_turn(const struct replica *replica, int64_t *until_ns);
/* The oldest step has ended: its gaps and its row are recorded. 0, or an error. */
int rotation_land(struct replica *replica, const struct ifl_done *done,
                  struct ifl_recorder *recorder, struct ifl_error *error);
/* It begins again: its description, for the executor. */
const struct ifl_step_desc *rotation_turn(struct replica *replica);
/* The rotation ends: records of requests are brought up to date. */
void rotation_close(struct replica *replica);

#endif
