/* Requests with two replicas: K/V that moves from one to the other (fleet/handover.h, fleet/link.h,
 * replica/moving.h).
 *
 * At equal times steps end first, then moves, then requests leave. Of several moves at one time,
 * the move of the earlier request ends first. */
#ifndef SIM_RUN_FLIGHT_MOVES_H
#define SIM_RUN_FLIGHT_MOVES_H

#include "fleet/handover.h"
#include "run/flight.h"

struct loop;
struct moves;

/* Returns NULL, with *error set, on failure. The loop is borrowed until moves_destroy. */
struct moves *moves_create(struct loop *loop, struct ifl_error *error);
void moves_destroy(struct moves *moves);

/* Sends the request to both replicas; to the decode replica only later if hand-overs pull. */
int moves_send(struct moves *moves, uint32_t prefill, uint32_t decode, const struct arrival *a,
               int64_t now_ns, struct ifl_error *error);
/* Returns the next time at which a move ends or K/V may be lost. */
int64_t moves_next_ns(const struct moves *moves);
/* Handles the moves that have ended and the K/V that is lost by now. */
int moves_end(struct moves *moves, struct ifl_error *error);
/* Call them when a step of the replica has ended, and when the replica has made a plan. */
int moves_hear_step(struct moves *moves, struct replica *replica, const struct ifl_done *done,
                    struct ifl_error *error);
int moves_hear_plan(struct moves *moves, struct replica *replica, struct ifl_error *error);
/* Call it when the client of a request at that replica has gone, or its deadline has passed. */
int moves_leave(struct moves *moves, struct replica *replica, struct live_request *r,
                enum ifl_status status, int64_t now_ns, struct ifl_error *error);
/* True if the decode replica has dropped r while its prompt is computed: then the record at the
 * prefill replica is reported, when its step ends. */
bool moves_fails_prompt(const struct moves *moves, const struct live_request *r);
/* Fills the fields about moves in the row of r, which has left the replica. */
void moves_report(const struct moves *moves, const struct live_request *r,
                  struct ifl_request_record *record);
/* Call it before the record of r is reused. */
int moves_forget(struct moves *moves, const struct replica *replica, const struct live_request *r,
                 struct ifl_error *error);

#endif
