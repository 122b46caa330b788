/* timeline.json: a run as Perfetto and chrome://tracing draw it, in the JSON array flavour of the
 * Trace Event Format.
 *
 * A point is a process, its number the pid. On its thread 0 stands a slice a step with the step's
 * totals; counters (batch, queue, kv_blocks) hold from the start of a step to that of the next. A
 * request is a lifeline of nested slices, keyed by its id within the process:
 *
 *     request   arrival ........................................ last token
 *     inside    queued ...... prefill ........ decode ..........
 *                           first scheduled  first token
 *
 * Times of stalls are not known, only their sum: stalled_s. A request that never got its last token
 * has the inner slices whose ends are known, and ends with them. Times are microseconds with three
 * decimals: exact nanoseconds.
 *
 * Events come in the order in which steps and requests end. The first step or request that does not
 * fit into max_events any more is left out, and so is everything behind it. The process_name event
 * at the end of the point says so ("truncated": true), and how much there was. It does not count.
 *
 * The file of a point is a list of events without the brackets; ifl_join_timeline adds them. */
#ifndef INFLIGHT_REPORTS_TIMELINE_H
#define INFLIGHT_REPORTS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/report.h"
#include "whole_file.h"

struct timeline {
    struct whole_file file; /* zeroed: no timeline is wanted */
    int32_t point;
    const char *label; /* borrowed, may be NULL */
    uint64_t n_events, max_events;
    uint64_t n_steps, n_steps_shown, n_requests, n_requests_shown;
    bool truncated;
};

int timeline_open(struct timeline *timeline, const struct ifl_recorder_options *options,
                  struct ifl_error *error);
int timeline_step(struct timeline *timeline, const struct ifl_step_record *step,
                  struct ifl_error *error);
int timeline_request(struct timeline *timeline, const struct ifl_request_record *request,
                     struct ifl_error *error);
/* Writes the last event. The file is the caller's to close and publish. */
int timeline_end(struct timeline *timeline, struct ifl_error *error);

#endif
