/* A trial: the requests of a recording, simulated with given parameters. */
#ifndef SIM_IDENTIFY_TRIAL_H
#define SIM_IDENTIFY_TRIAL_H

#include <signal.h>
#include <stdatomic.h>

#include "identify/parameters.h"
#include "identify/recording.h"
#include "run/point.h"

struct trial_setting {
    const struct config *config;
    struct trace_shelf *traces;
    struct profile_shelf *profiles;
    const volatile sig_atomic_t *stop;
    atomic_ullong *n_flown, *n_ended; /* trials and their requests, for a progress line; or NULL */
    struct step_noise noise;          /* of the steps; zeroed: none */
};

struct trial {
    size_t n;
    double *of[N_LATENCIES]; /* [n] s, from the arrival at the front end; NaN: none */
    double *wait_s;          /* [n] from the arrival at the engine to the first step */
    int32_t *cached_tokens;  /* [n] */
};

int trial_open(struct trial *trial, size_t n, struct ifl_error *error);
void trial_close(struct trial *trial);

/* Simulates the requests of a recording with the parameters `value`. shift 0: with the recorded
 * stamps. Otherwise each stamp is moved by up to a time per token, drawn by row and `shift`: the
 * time within a step at which a request arrives is not known more exactly, and the mean over
 * several shifts is smooth in the parameters. */
int trial_fly(const struct trial_setting *setting, const struct recording *recording,
              const double value[N_PARAMETERS], unsigned shift, struct trial *trial,
              struct ifl_error *error);
/* As trial_fly, but only until the last of the fitted requests has ended: half the time. Values of
 * the other requests must not be used. */
int trial_fly_fitted(const struct trial_setting *setting, const struct recording *recording,
                     const double value[N_PARAMETERS], unsigned shift, struct trial *trial,
                     struct ifl_error *error);

#endif
