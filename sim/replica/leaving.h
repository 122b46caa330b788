/* Requests that leave a replica: those that the loop has yet to report, those whose last token is
 * unknown to a plan made ahead, and those that leave early when a step ends. */
#ifndef SIM_REPLICA_LEAVING_H
#define SIM_REPLICA_LEAVING_H

#include "replica/live_request.h"

/* When a running request that leaves early (aborted, timed out) is removed: at the end of the step
 * in flight, or of its next step (replica_leave.c). */
enum leave { LEAVE_STEP_END, LEAVE_NEXT_STEP };

struct leaving {
    struct live_request **gone; /* requests rejected in this plan or finished in this step */
    size_t n_gone;
    size_t n_decodes_gone; /* length of the leading part of `gone` that a tick of this step
                              finished */
    size_t n_ended, n_early;
    struct live_request **ended; /* finished in a step whose end the next plan, made ahead, does
                                    not see; in order of start, as vLLM's list of running
                                    requests */
    struct live_request **early; /* on the device, to leave when a step ends (replica_leave.c) */
};

/* Makes room for n requests. Returns 0 or IFL_E_NOMEM. Zeroed memory is valid for leaving_destroy.
 */
int leaving_reserve(struct leaving *leaving, size_t n);
void leaving_destroy(struct leaving *leaving);
void leaving_keep_ended(struct leaving *leaving, struct live_request *r);

static inline void leaving_add(struct leaving *leaving, struct live_request *r)
{
    leaving->gone[leaving->n_gone++] = r;
}

/* ticked: all requests in `gone` so far were finished by a tick; false: none was. */
static inline void leaving_by_tick(struct leaving *leaving, bool ticked)
{
    leaving->n_decodes_gone = ticked ? leaving->n_gone : 0;
}

/* r leaves when the n_steps-th step from now ends; the step in flight counts as the first. */
static inline void leaving_note_early(struct leaving *leaving, struct live_request *r,
                                      int32_t n_steps)
{
    ifl_assert(n_steps > 0 && r->stays_steps == 0);
    r->stays_steps = n_steps;
    leaving->early[leaving->n_early++] = r;
}

/* r is gone already: takes it off the list of requests that leave with a step. */
void leaving_forget_early(struct leaving *leaving, struct live_request *r);
/* Call it when a step has ended. Appends the requests that leave with this step to `gone` and
 * returns how many. */
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
