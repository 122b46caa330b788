/* timeline.json: a run as Perfetto and chrome://tracing draw it, in the JSON array flavour of the
 * Trace Event Format. Perfetto's UI (v52, in Chromium 156) opens it without an import error.
 *
 * A point is a process, its number the pid, and a replica a thread of it: a slice a step with the
 * step's totals. Slices of a thread may nest but not overlap: a viewer drops a slice that overlaps
 * another. A replica with several steps in flight therefore has as many threads, and its steps are
 * put on them in turn. Counters (batch, queue, kv_blocks) hold from the start of a step to the
 * start of the next. From the second replica on, the names of counters include the replica. A
 * request is a lifeline of nested slices, keyed by its id within the process:
 *
 *     request     arrival ........................................ last token
 *     inside      queued ...... prefill ........ decode ..........
 *                             first scheduled  first token
 *     inside these             chunk chunk       preempted, swapped, recompute
 *
 * A move of its K/V between replicas is a slice of its own (cat move). A chunk is the part of a
 * prompt that a step computed; a recompute is the same for a request that lost its K/V after its
 * first token. `preempted` and `swapped` last until the request is scheduled again. A slice that
 * does not nest, since steps in flight overlap, is a lifeline of its own, with a dot and a number
 * after the request's id. A request that never got its last token has the inner slices with a known
 * end, and ends with the last of them. Times are microseconds with three decimals: exact
 * nanoseconds.
 *
 * Three rules bound the file:
 * - steps and requests outside the window are left out, as a whole;
 * - only one in so many steps and requests is kept, by step number and by request id;
 * - a step or request that does not fit into max_events is left out, with all that end after it.
 *
 * The process_name event at the end of the point says so ("truncated": true) and has the full
 * counts. It does not count as an event.
 *
 * Steps are written as they end. Requests follow at the end, in the order of their ends, because an
 * inner slice must come after the slice that contains it. The file of a point is a list of events
 * without the brackets; a joint adds them. */
#ifndef INFLIGHT_REPORTS_TIMELINE_H
#define INFLIGHT_REPORTS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/report.h"
#include "record/life.h"
#include "record/pools.h"
#include "tables/whole_file.h"

enum span_kind { SPAN_CHUNK, SPAN_PREEMPTED, SPAN_SWAPPED };

struct span {
    uint64_t request_id;
    int64_t start_ns, end_ns;
    int32_t n_tokens; /* tokens of a chunk */
    enum span_kind kind;
    bool apart; /* the slice does not nest in the lifeline of its request */
};

struct timeline {
    struct whole_file file; /* zeroed: no timeline is wanted */
    int32_t point;
    const char *label;         /* borrowed, may be NULL */
    const struct pools *pools; /* borrowed */
    int32_t n_in_flight;       /* most steps of a replica in flight, if there are no pools */
    int64_t from_ns, to_ns;
    int64_t token_ns; /* from the end of a step until clients have its tokens */
    uint64_t every;
    int32_t n_replicas_named;
    int32_t n_pipelines_named;
    struct span *spans; /* [max_spans], owned: nothing is allocated while the run goes on */
    size_t n_spans, max_spans;
    const struct life **shown; /* [n_requests_shown], owned array */
    uint64_t n_events, max_events;
    uint64_t n_steps, n_steps_shown, n_requests, n_requests_shown;
    bool truncated;
};

int timeline_open(struct timeline *timeline, const struct ifl_recorder_options *options,
                  const struct pools *pools, struct ifl_error *error);
void timeline_discard(struct timeline *timeline); /* zeroed memory is fine */
int timeline_step(struct timeline *timeline, const struct ifl_step_record *step,
                  struct ifl_error *error);
/* Writes a slice on the row of a stage; these rows follow those of the replicas. */
int timeline_stage(struct timeline *timeline, const struct ifl_stage_record *stage,
                   struct ifl_error *error);
/* Writes a move as a slice of its own, beside the lifeline of the request. */
int timeline_move(struct timeline *timeline, const struct ifl_move_record *move,
                  struct ifl_error *error);
void timeline_work(struct timeline *timeline, const struct ifl_work_record *work);
void timeline_stall(struct timeline *timeline, const struct ifl_stall_record *stall);
/* Adds a finished life; its address must stay valid until timeline_end. */
void timeline_request(struct timeline *timeline, const struct life *life);
/* Writes the shown requests, in the order of their ends, and the last event. The caller closes and
 * publishes the file. */
int timeline_end(struct timeline *timeline, struct ifl_error *error);

#endif
