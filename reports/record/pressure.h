/* Counts which resource was full in steps whose plan left requests waiting: they tell which limit
 * keeps requests waiting. */
#ifndef INFLIGHT_REPORTS_PRESSURE_H
#define INFLIGHT_REPORTS_PRESSURE_H

#include "inflight/report.h"

/* Zeroed at first. */
struct pressure {
    int64_t waiting_ns, at_seats_ns, at_tokens_ns, at_blocks_ns;
    int32_t most_running, most_tokens;
};

/* Counts a step with a plan that left requests waiting, or a part of a stretch with the same number
 * of used blocks. */
void pressure_add(struct pressure *pressure, const struct ifl_step_record *step, int64_t lasted_ns,
                  int32_t used_blocks);
/* Counts all steps of such a stretch. */
void pressure_add_stretch(struct pressure *pressure, const struct ifl_stretch_record *stretch);
struct ifl_pressure pressure_sum_up(const struct pressure *pressure);

#endif
