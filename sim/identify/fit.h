/* The fit: the parameters of the host from the times per token, those of the front end from the
 * times to the first token, and the pool from both.
 *
 * Each parameter is fitted to the latency that it acts on directly. The time to the first token
 * also depends on the host, but far more on the moment within a step at which a request arrives, so
 * its derivative by the host's times is noise.
 *
 * Intervals are those of an M-estimator with scores that are correlated within a span of time: the
 * sandwich of Liang and Zeger (Biometrika 73(1), 1986), with Student's t for the spans. The
 * intervals of the pool, of the share of prompts in a cache and of the factor of prompts' kernels
 * are bootstraps of the spans over the parameters' profiles. */
#ifndef SIM_IDENTIFY_FIT_H
#define SIM_IDENTIFY_FIT_H

#include "identify/residuals.h"

struct fit {
    struct residuals *residuals;
    double value[N_PARAMETERS];
    bool is_free[N_PARAMETERS];
    double exchange_unit; /* s/GB; of fit_probe_exchange */
    /* out, of free parameters */
    double low[N_PARAMETERS], high[N_PARAMETERS]; /* 90% */
    double covariance[N_PARAMETERS][N_PARAMETERS];
    double along[N_PARAMETERS];       /* units by which the best values of the other parameters
                                         change per unit of fit_followed, along its profile */
    double along_pool[N_PARAMETERS];  /* the same per unit of BLOCKS */
    double pool_sd;                   /* standard deviation of BLOCKS, units */
    double front_scale;               /* scale of the residuals of times to the first token in
                                         which the front end shows */
    double scale[N_LATENCIES];        /* of the residuals, logarithms */
    double *predicted_s[N_LATENCIES]; /* [residuals->n] at the value */
    size_t n_flights;
};

int fit_open(struct fit *fit, struct residuals *residuals, struct ifl_error *error);
void fit_close(struct fit *fit);
/* True if the parameter is searched over a grid, with the others fitted anew at each value:
 * derivatives by it say little. */
bool fit_is_profiled(enum parameter parameter);
/* Returns which of CACHE_HIT and PROMPT_FRAC is free; N_PARAMETERS: neither. It acts on all
 * latencies, and the other parameters follow it along its profile. Only one of the two is free at a
 * time, since both determine how long prompts take. */
enum parameter fit_followed(const struct fit *fit);
/* Fits all free parameters, starting from fit->value. The pool, if it is free, is searched between
 * the given numbers of blocks, in steps of a twelfth. */
int fit_find(struct fit *fit, double least_blocks, double most_blocks, struct ifl_error *error);
/* As fit_find, without the pool. */
int fit_again(struct fit *fit, struct ifl_error *error);
/* Searches the pool and the followed parameter in finer steps around their intervals. */
int fit_refine(struct fit *fit, struct ifl_error *error);
/* The negative logarithm of the likelihood at the value, but for a constant. */
double fit_lost(const struct fit *fit);
/* Finds the unit of the exchange rate by simulating it eight times slower. *acts is false if no
 * time per token then grows by 1%. */
int fit_probe_exchange(struct fit *fit, bool *acts, struct ifl_error *error);
/* Which latency a parameter is fitted to. */
enum latency fit_latency(enum parameter parameter);
/* A step of the parameter that changes the median latency it is fitted to by a tenth. */
double fit_unit(const struct fit *fit, enum parameter parameter);

#endif
