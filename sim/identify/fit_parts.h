/* Functions that only the files of the fit use. */
#ifndef SIM_IDENTIFY_FIT_PARTS_H
#define SIM_IDENTIFY_FIT_PARTS_H

#include <gsl/gsl_matrix.h>

#include "identify/fit.h"

/* Moves a value by so many units of its parameter. */
void fit_move(const struct fit *fit, enum parameter parameter, double units,
              double value[N_PARAMETERS]);
/* Fills fit->predicted_s. */
int fit_predict(struct fit *fit, const double value[N_PARAMETERS], struct ifl_error *error);
/* Returns what one latency of a row contributes to fit_lost. */
double fit_lost_by(const struct fit *fit, enum latency latency, size_t row);
/* The free parameters without a profile that are fitted to the latency. */
size_t fit_list_free(const struct fit *fit, enum latency latency, enum parameter of[]);
/* Fits host and front end from their present values, without a descent. */
int fit_refit(struct fit *fit, struct ifl_error *error);
/* True if the front end shows in the row's time to the first token. */
bool fit_shows_front(const struct fit *fit, size_t row);
/* Returns in how many requests the front end shows, averaged over the simulations. */
size_t fit_n_front(const struct fit *fit);
/* By how much a unit of a parameter of the front end moves the row's first token, s. */
double fit_front_slope_s(const struct fit *fit, enum parameter parameter, size_t row);

/* ---- profile.c ---- */

enum { PROFILE_FEW = 7, PROFILE_COARSE = 12, PROFILE_FINE = 13 };
/* n points between low and high values of the parameter; fills its interval, and fit->along or, of
 * a pool with `refit`, fit->along_pool. With `refit` a pool is looked for beyond them, too, where
 * the least loss lies at an end. */
int profile_search(struct fit *fit, enum parameter parameter, size_t n, double low, double high,
                   bool refit, struct ifl_error *error);
/* The score test of a parameter that is not free, along its profile. */
struct profile_test {
    double sds; /* by how many standard deviations (those of sums of spans) the loss falls as the
                   parameter grows from its present value */
    double along[N_PARAMETERS]; /* distances that the best values of the others move, per unit */
};
int profile_test(struct fit *fit, enum parameter parameter, struct profile_test *test,
                 struct ifl_error *error);
/* The lower end of a profile with an upper end that does not limit anything. */
struct profile_end {
    double low, best; /* low: the least value that the recordings allow */
    double shows; /* part of the draws of spans that the best explains better than the upper end;
                     0 if it does not explain the recordings better */
};
/* Fills *end with the other parameters held fixed; leaves the fit unchanged. */
int profile_least(struct fit *fit, enum parameter parameter, double low, double high,
                  struct profile_end *end, struct ifl_error *error);
/* Searches within the parameter's interval, extended by half its width on both sides. */
int profile_zoom(struct fit *fit, enum parameter parameter, struct ifl_error *error);

/* ---- interval.c ---- */

/* Derivatives of the logarithms of the latencies, and the instruments that scores are summed
 * with. */
struct slopes {
    enum parameter of[N_PARAMETERS];
    size_t k;
    double *of_row[N_PARAMETERS][N_LATENCIES]; /* [rows] by a unit */
    double *load; /* [rows] sequences in the steps of a request's decode */
};

/* Computes the slopes; leaves fit->predicted_s at fit->value. The caller must call slopes_close,
 * after an error, too. */
int slopes_open(struct slopes *slopes, struct fit *fit, const enum parameter of[], size_t k,
                struct ifl_error *error);
void slopes_close(struct slopes *slopes);
/* The step of Newton in units, for the residuals of TTFT, or those of TPOT and end to end. */
int slopes_newton(const struct slopes *slopes, const struct fit *fit, enum latency latency,
                  double by[], struct ifl_error *error);
/* Adds the scores at fit->value, [n_spans][k], their derivatives by the parameters, [k][k], and, if
 * levels is not NULL, those by the logarithm of a factor that all latencies of a kind have,
 * [N_LATENCIES][k]. */
void slopes_score(const struct slopes *slopes, const struct fit *fit, gsl_matrix *scores,
                  gsl_matrix *bread, gsl_matrix *levels);
/* Fills the intervals and the covariance of all free parameters without a profile. What a share in
 * a cache leaves open is added to both. */
int interval_bound(struct fit *fit, struct ifl_error *error);

#endif
