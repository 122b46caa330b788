/* A recorder for tests: keeps all records in memory instead of writing reports. It is linked before
 * the real recorder and replaces it. */
#ifndef TESTS_SIM_CAPTURE_H
#define TESTS_SIM_CAPTURE_H

#include "inflight/report.h"

struct capture {
    struct ifl_request_record *requests;
    size_t n_requests, cap_requests;
    struct ifl_step_record *steps;
    size_t n_steps, cap_steps;
    struct ifl_difference_record differences[16];
    size_t n_differences;
    uint64_t n_moves, n_between_tiers;
    int64_t hidden_ns;          /* of all moves */
    int64_t n_gaps, gap_sum_ns; /* gaps between tokens */
    int64_t stage_ns;           /* computed in all stages of pipelines */
    bool keep_steps;
    size_t n_growths; /* allocations made by the recorder itself */
};

/* The capture that the next ifl_recorder_create returns. */
extern struct capture *capture_target;
void capture_free(struct capture *capture);

#endif
