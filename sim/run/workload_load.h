/* The workload that a configuration asks for: its trace and its clients. */
#ifndef SIM_RUN_WORKLOAD_LOAD_H
#define SIM_RUN_WORKLOAD_LOAD_H

#include "config/config.h"
#include "run/trace_shelf.h"
#include "run/workload.h"

struct workload_source {
    const struct workload_config *workload;
    struct trace_shelf *traces;
    const struct ifl_trace *instead; /* these requests in place of the trace's; NULL: its own */
    struct ifl_notes notes;
};

/* Reads the trace, keeps the window's rows and gives them their arrivals. The caller frees it. */
int workload_load(const struct workload_source *source, struct ifl_trace *trace,
                  struct ifl_error *error);
/* For workload_create: requests that are under way at a time, 0 in an open loop. */
int32_t workload_concurrency(const struct workload_config *workload);
/* Sets what the workload's clients do. */
void workload_configure(struct workload *workload, const struct config *config);

#endif
