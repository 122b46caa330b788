/* Errors of a simulated run over some requests of a recording. */
#ifndef SIM_IDENTIFY_JUDGE_H
#define SIM_IDENTIFY_JUDGE_H

#include "identify/trial.h"

struct judged {
    size_t n;
    double mean[N_LATENCIES];    /* simulated mean over measured mean, less 1 */
    double request[N_LATENCIES]; /* median relative error of a request, without its sign */
};

/* Over requests from..to - 1; those that the simulation could not serve are left out. */
int judge(const struct recording *recording, const struct trial *trial, size_t from, size_t to,
          struct judged *judged, struct ifl_error *error);

#endif
