/* Requests with two replicas: K/V that moves from one to the other (fleet/handover.h, fleet/link.h,
 * replica/moving.h).
 *
 * At equal times steps end first, then moves, then requests leave. Of several moves that of the
 * earlier request ends first. */
#ifndef SIM_RUN_FLIGHT_MOVES_H
#define SIM_RUN_FLIGHT_MOVES_H

#include "fleet/handover.h"
#include "run/flight.h"

struct loop;
struct moves;

/* NULL and *error on failure. Everything is borrowed until moves_destroy. */
struct moves *moves_create(struct loop *loop, struct ifl_error *error);
void moves_destroy(struct moves *moves);

/* The request goes to both replicas, to the second one later where hand-overs pull. */
int moves_send(struct moves *moves, uint32_t prefill, uint32_t decode, const struct arrival *a,
               int64_t now_ns, struct ifl_error *error);
/* When something may move next, or be lost. */
int64_t moves_next_ns(const struct moves *moves);
/* What has moved by now, or is lost. */
int moves_end(struct moves *moves, struct ifl_error *error);
/* A step of the replica has ended; it has made a plan. */
int moves_hear_step(struct moves *moves, struct replica *replica, const struct ifl_done *done,
                    struct ifl_error *error);
int moves_hear_plan(struct moves *moves, struct replica *replica, struct ifl_error *error);
/* The client of a request at that replica has gone, or its time is up. */
int moves_leave(struct moves *moves, struct replica *replica, struct live_request *r,
                enum ifl_status status, int64_t now_ns, struct ifl_error *error);
/* True if the decode replica has dropped r while its prompt is computed: the record at the prefill
 * replica makes the row, as its step ends. */
bool moves_fails_prompt(const struct moves *moves, const struct live_request *r);
/* r, which makes a row, is gone from the replica: what the row says of its moves. */
void moves_report(const struct moves *moves, const struct live_request *r,
                  struct ifl_request_record *record);
/* Its record is about to be reused. */
int moves_forget(struct moves *moves, const struct replica *replica, const struct live_request *r,
                 struct ifl_error *error);

#endif
