/* Deployments that are drawn: their truth is known, and their runs have noise. */
#ifndef TESTS_IDENTIFY_DRAWN_H
#define TESTS_IDENTIFY_DRAWN_H

#include "identify/identify.h"

struct system {
    const char *model, *hardware, *preset;
    int32_t ranks, data; /* tensor-parallel and data-parallel */
};

enum { N_SYSTEMS = 8 };
extern const struct system systems[N_SYSTEMS];

struct deployment_case {
    const struct system *system;
    double truth[N_PARAMETERS];
    double prompt_tokens; /* about so many; 0: drawn */
    bool is_exact;        /* without noise */
    bool tight;           /* the pool is small enough that requests wait */
    struct study *study;
    struct config config;
    struct trace_shelf traces;
    struct profile_shelf profiles;
    struct recording recording;
};

void must(int rc, const struct ifl_error *error);
/* The caller owes case_unload. */
void case_load(struct deployment_case *c);
void case_unload(struct deployment_case *c);
struct trial_setting case_setting(struct deployment_case *c);
/* Fills the values that configuration and profile say; the blocks that the engine counts. */
double case_start(struct deployment_case *c, double value[N_PARAMETERS]);
void case_draw_truth(struct deployment_case *c, uint64_t number);
void case_draw_requests(const struct deployment_case *c, struct ifl_trace *trace, uint64_t number,
                        size_t n, double rate_rps);
/* A load at which the server is neither idle nor drowned: half to nine tenths of the rate at which
 * it serves them when all come at once. */
double case_choose_rate(struct deployment_case *c, uint64_t number);
/* The rate at which it serves them when all come at once. */
double case_most_rate(struct deployment_case *c, uint64_t number);
/* The mean latencies of other requests, without noise. */
void case_means(struct deployment_case *c, const double value[N_PARAMETERS], uint64_t number,
                double rate_rps, double means[N_LATENCIES]);
/* The run that the truth gives, with the noise. False if a request did not finish. */
bool case_record(struct deployment_case *c, uint64_t number, double rate_rps, size_t n);
/* Of the recording, which it frees. N_PARAMETERS releases none. */
void case_identify(struct deployment_case *c, enum parameter released, struct identified *found);
/* The same among the presets that come with inflight. */
void case_identify_among(struct deployment_case *c, struct identified *found);

#endif
