/* The workload that a configuration asks for: its trace and its clients. */
#ifndef SIM_RUN_WORKLOAD_LOAD_H
#define SIM_RUN_WORKLOAD_LOAD_H

#include "config/config.h"
#include "run/trace_shelf.h"
#include "run/workload.h"

struct workload_source {
    const struct workload_config *workload;
    struct trace_shelf *traces;
    const struct ifl_trace *instead; /* requests used in place of the trace file; NULL: the file is
                                        read */
    struct ifl_notes notes;
};

/* Reads the trace, keeps the rows of the window and sets their arrivals. The caller frees *trace.
 */
int workload_load(const struct workload_source *source, struct ifl_trace *trace,
                  struct ifl_error *error);
/* Returns `concurrency` for workload_create: the number of requests under way at a time, 0 in an
 * open loop. */
int32_t workload_concurrency(const struct workload_config *workload);
/* Sets predictions, patience, deadlines and retries of the workload's clients. */
void workload_configure(struct workload *workload, const struct config *config);

#endif
