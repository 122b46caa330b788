/* Functions that the files which implement `struct ifl_step_ops` share. Functions of that table are
 * documented there (step.h). */
#ifndef SIM_REPLICA_STEP_BUILDER_H
#define SIM_REPLICA_STEP_BUILDER_H

#include "replica/replica_parts.h"
#include "replica/step_lists.h"

/* Returns the module that acts on the step now: the module that is being called; else the preempt
 * module whose `ahead` runs; else the batching module. */
const struct ifl_policy *step_actor(const struct replica *replica);
/* Records that step_actor has broken its contract: `what` says how. Only the first breach counts.
 */
IFL_COLD void step_breach(struct replica *replica, const char *what);
IFL_COLD void step_breach_change(struct replica *replica);
/* Records that the module `by` has broken its contract with an answer. */
IFL_COLD void step_breach_by(struct replica *replica, const struct ifl_policy *by,
                             const char *what);
/* Records that the module `by` has answered `answer`; `what` says to which question, and what was
 * expected. */
IFL_COLD void step_breach_answer(struct replica *replica, const struct ifl_policy *by,
                                 long long answer, const char *what);
extern const char step_stranger[]; /* text of the breach: a module names a request that is no
                                      record of this replica */
IFL_COLD bool step_breach_stranger(struct replica *replica); /* false */
/* Returns false, and records a breach, if r is no record of this replica. Call it before anything
 * behind struct ifl_request is read. */
static inline bool step_knows(struct replica *replica, const struct ifl_request *r)
{
    return !IFL_RARE(!live_is_of(&replica->here.pool, r)) || step_breach_stranger(replica);
}
/* Returns true if the step may be changed: only the batching module may do so, and only in its
 * plan. Returns false, and records a breach, if another module or a hook tries to; and false after
 * any breach. */
static inline bool step_may_change(struct replica *replica)
{
    const struct plan *plan = &replica->plan;
    if (IFL_RARE(plan->called || plan->ahead))
        step_breach_change(replica);
    return !plan->broken;
}
/* As step_may_change, for changes that the `ahead` of a preempt module may make, too. */
static inline bool step_may_swap(struct replica *replica)
{
    if (IFL_RARE(replica->plan.called))
        step_breach_change(replica);
    return !replica->plan.broken;
}
/* Remembers why r was refused. For each state, only the last refusal of a plan is kept. */
static inline void step_note_refusal(struct replica *replica, const struct ifl_request *r,
                                     const struct ifl_policy *by, const char *why, bool lasts)
{
    plan_refuse(&replica->plan, (struct refusal){live(r), by, why, lasts});
}
static inline const struct ifl_policy *step_planner(const struct replica *replica)
{
    return replica->fixed.modules[IFL_BATCHING].policy;
}
/* Call it when blocks have been taken or given back. */
static inline void step_count_blocks(struct replica *replica)
{
    plan_count_blocks(&replica->plan, &replica->kv);
    if (IFL_RARE(replica->adapters.fixed.n > 0))
        plan_count_adapters(&replica->plan, &replica->adapters);
}

/* ---- step_schedule.c ---- */

enum ifl_verdict step_schedule(struct ifl_step *step, const struct ifl_request *request, int32_t n,
                               int32_t hold_tokens);
enum ifl_verdict step_schedule_drafts(struct ifl_step *step, const struct ifl_request *request,
                                      int32_t n, int32_t n_draft, int32_t hold_tokens);
bool step_schedule_ready(struct ifl_step *step, int32_t spare_blocks);
/* Schedules n more tokens of each sequence of r, and n_draft guesses behind them. r must hold the
 * blocks for both. */
void step_put_in_plan(struct replica *replica, struct live_request *r, int32_t n, int32_t n_draft);
/* Takes back the tokens that this plan has given r, if any. */
void step_undo_schedule(struct replica *replica, struct live_request *r);

/* ---- replica_drafts.c ---- */

int32_t step_drafts(struct ifl_step *step, const struct ifl_request *request);

/* ---- step_start.c ---- */

enum ifl_verdict step_ask(struct ifl_step *step, const struct ifl_request *request, int32_t n,
                          int32_t spare_blocks, int32_t *takes);
enum ifl_verdict step_ask_for_all(struct ifl_step *step, int32_t *longest);
double step_room(struct ifl_step *step, double enough);
enum ifl_verdict step_start(struct ifl_step *step, const struct ifl_request *request, int32_t n);
enum ifl_verdict step_start_padded(struct ifl_step *step, const struct ifl_request *request,
                                   int32_t n, int32_t n_rows);

/* ---- step_preempt.c ---- */

bool step_make_room(struct ifl_step *step, const struct ifl_request *needy);
enum ifl_verdict step_preempt(struct ifl_step *step, const struct ifl_request *request,
                              enum ifl_fate fate, enum ifl_place place);
void step_reject(struct ifl_step *step, const struct ifl_request *request);
/* Records the batching module's reason for not starting the request, or for dropping it next. */
void step_refuse(struct ifl_step *step, const struct ifl_request *request, const char *why);
/* Takes r off the list of swapped requests. */
void step_remove_swapped(struct replica *replica, struct live_request *r);
/* As step_remove_swapped, and gives back the blocks of r in host memory. */
void step_leave_host(struct replica *replica, struct live_request *r);

#endif
