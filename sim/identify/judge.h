/* Errors of a simulated run over some requests of a recording. */
#ifndef SIM_IDENTIFY_JUDGE_H
#define SIM_IDENTIFY_JUDGE_H

#include "identify/trial.h"

struct judged {
    size_t n;
    double mean[N_LATENCIES];    /* simulated mean over measured mean, less 1 */
    double request[N_LATENCIES]; /* median relative error of a request, without its sign */
};

/* What a mean that was not fitted is off beside what the parameters leave open: the root mean
 * square of what the second halves of runs on other GPUs were off after their first halves were
 * fitted, and from how many runs that is known (reports/reproductions/identify). */
double judge_model_error(enum latency latency);
enum { JUDGE_MODEL_RUNS = 6 };
/* Widens the ends of 90% around a predicted mean by the model's error, as logarithms. */
void judge_widen(enum latency latency, double mean, double *low, double *high);
/* Over requests from..to - 1; those that the simulation could not serve are left out. */
int judge(const struct recording *recording, const struct trial *trial, size_t from, size_t to,
          struct judged *judged, struct ifl_error *error);

#endif
