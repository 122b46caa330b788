/* A cache of traces for the points of a study: a sweep reads each file once per process.
 *
 * Points copy the rows that they use, so that entries never change; but the last point takes a
 * whole entry for itself. An entry that is not in use stays
 * - if it is the last that was used, or
 * - while such entries together have at most SHELF_IDLE_ITEMS rows, hash ids and gaps.
 *
 * Any number of threads may use a shelf; if two threads need the same file, both wait for one
 * reading of it. */
#ifndef SIM_RUN_TRACE_SHELF_H
#define SIM_RUN_TRACE_SHELF_H

#include <pthread.h>

#include "inflight/trace.h"

#define SHELF_IDLE_ITEMS ((size_t)4 << 20) /* some hundred megabytes */

struct shelved_trace;

struct trace_shelf {
    pthread_mutex_t lock;
    struct shelved_trace *first; /* the entry used last */
    struct ifl_notes notes;      /* notes about the files, once for each file */
    bool clears;                 /* the shelf keeps no entry that is not in use */
};

void trace_shelf_init(struct trace_shelf *shelf, struct ifl_notes notes);
void trace_shelf_finish(struct trace_shelf *shelf);
/* Call it when no further point will need a trace: frees the entries that are not in use, and the
 * others after their use. */
void trace_shelf_clear(struct trace_shelf *shelf);

/* Returns the rows of a file that are in the window, as a trace that the caller frees. `notes`
 * receives notes about the window. */
int trace_shelf_cut(struct trace_shelf *shelf, const struct ifl_trace_file *file,
                    const struct ifl_trace_window *window, const struct ifl_notes *notes,
                    struct ifl_trace *trace, struct ifl_error *error);

#endif
