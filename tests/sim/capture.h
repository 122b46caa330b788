/* A recorder for tests: keeps everything in memory instead of writing reports. Linked before the
 * real one, it takes its place. */
#ifndef TESTS_SIM_CAPTURE_H
#define TESTS_SIM_CAPTURE_H

#include "inflight/report.h"

struct capture {
    struct ifl_request_record *requests;
    size_t n_requests, cap_requests;
    struct ifl_step_record *steps;
    size_t n_steps, cap_steps;
    int64_t n_gaps, gap_sum_ns; /* gaps between tokens */
    bool keep_steps;
    size_t n_growths; /* allocations made by the recorder itself */
};

/* Where the next ifl_recorder_create leads to. */
extern struct capture *capture_target;
void capture_free(struct capture *capture);

#endif
