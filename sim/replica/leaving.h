/* Requests that leave a replica: those that the loop has yet to report, those with a last token
 * that a plan made ahead does not know of, and those that leave early, as a step ends. */
#ifndef SIM_REPLICA_LEAVING_H
#define SIM_REPLICA_LEAVING_H

#include "replica/live_request.h"

/* When a request on the device that leaves early does so (replica_leave.c). */
enum leave { LEAVE_STEP_END, LEAVE_NEXT_STEP };

struct leaving {
    struct live_request **gone; /* rejected in this plan or finished in this step */
    size_t n_gone;
    size_t n_decodes_gone; /* the leading ones: finished by a tick of this step */
    size_t n_ended, n_early;
    struct live_request **ended; /* finished in a step that the next plan is made ahead of, in order
                                    of start: that of vLLM's list of running requests */
    struct live_request **early; /* on the device, to leave as a step ends, see replica_leave.c */
};

/* Room for n requests; 0, or IFL_E_NOMEM. Zeroed memory is valid for leaving_destroy. */
int leaving_reserve(struct leaving *leaving, size_t n);
void leaving_destroy(struct leaving *leaving);
void leaving_keep_ended(struct leaving *leaving, struct live_request *r);

static inline void leaving_add(struct leaving *leaving, struct live_request *r)
{
    leaving->gone[leaving->n_gone++] = r;
}

/* All that have gone so far finished by a tick; with false none did. */
static inline void leaving_by_tick(struct leaving *leaving, bool ticked)
{
    leaving->n_decodes_gone = ticked ? leaving->n_gone : 0;
}

/* r leaves as the n_steps-th step from now on ends, the one in flight included. */
static inline void leaving_note_early(struct leaving *leaving, struct live_request *r,
                                      int32_t n_steps)
{
    ifl_assert(n_steps > 0 && r->stays_steps == 0);
    r->stays_steps = n_steps;
    leaving->early[leaving->n_early++] = r;
}

/* r is gone: the end of no step is waited for. */
void leaving_forget_early(struct leaving *leaving, struct live_request *r);
/* A step has ended. Moves those that leave with it to the end of `gone` and returns how many. */
size_t leaving_end_step(struct leaving *leaving);

static inline void leaving_clear_gone(struct leaving *leaving)
{
    leaving->n_gone = 0;
}

static inline void leaving_clear_ended(struct leaving *leaving)
{
    leaving->n_ended = 0;
}

#endif
