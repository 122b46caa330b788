/* Errors of a simulated run over some requests of a recording. */
#ifndef SIM_IDENTIFY_JUDGE_H
#define SIM_IDENTIFY_JUDGE_H

#include "identify/trial.h"

struct judged {
    size_t n;
    double mean[N_LATENCIES];    /* simulated mean over measured mean, less 1 */
    double request[N_LATENCIES]; /* median relative error of a request, without its sign */
};

/* Returns the usual relative error of a mean that was not fitted, in addition to the uncertainty of
 * the parameters: the root mean square error of the second halves of runs on other GPUs after
 * fitting their first halves. JUDGE_MODEL_RUNS says from how many runs it is known
 * (reports/reproductions/identify). */
double judge_model_error(enum latency latency);
enum { JUDGE_MODEL_RUNS = 6 };
/* Widens the ends of 90% around a predicted mean by the model's error, as logarithms. */
void judge_widen(enum latency latency, double mean, double *low, double *high);
/* Recordings, and a trial of each for simulating it. */
struct judge_runs {
    const struct trial_setting *setting;
    const struct recording *recordings;
    size_t n;
    struct trial *trials;
};

/* Sets *explained: with these values all latencies of nineteen in twenty fitted requests come out
 * within 0.2%. They explain the runs, and a fit to shifted stamps would only move them. */
int judge_explained(const struct judge_runs *runs, const double value[N_PARAMETERS],
                    bool *explained, struct ifl_error *error);
/* Fills *judged over the requests from..to - 1, except those that the simulation could not serve.
 */
int judge(const struct recording *recording, const struct trial *trial, size_t from, size_t to,
          struct judged *judged, struct ifl_error *error);

#endif
