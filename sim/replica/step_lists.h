/* The lists of a replica as the step shows them; see `struct ifl_step_ops` for the rules. */
#ifndef SIM_REPLICA_STEP_LISTS_H
#define SIM_REPLICA_STEP_LISTS_H

#include "replica/replica_parts.h"

const struct ifl_request *step_next(struct ifl_step *step, unsigned lists,
                                    struct ifl_cursor *cursor);
struct ifl_requests step_running(struct ifl_step *step);
const struct ifl_request *step_last_ranked(struct ifl_step *step, size_t at);
struct ifl_requests step_started(struct ifl_step *step);
struct ifl_requests step_scheduled(struct ifl_step *step);
bool step_took_part(struct ifl_step *step, const struct ifl_request *request);
int64_t step_oldest_waiting_ns(struct ifl_step *step);
struct ifl_hit step_hit(struct ifl_step *step, const struct ifl_request *r);
uint32_t step_above(struct ifl_step *step, uint32_t node);

/* Brings a member's counts up to date. */
static inline void step_sync(const struct replica *replica, struct live_request *r)
{
    if (r->in_cohort)
        cohort_sync(&replica->here.cohort, r);
}

/* Bring the record of a member, or of all members, up to date, including the token of
 * schedule_ready. */
void step_show(struct replica *replica, struct live_request *r);
void step_show_members(struct replica *replica);

#endif
