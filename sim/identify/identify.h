/* Identification: estimates numbers of a deployment that no document gives, from recorded runs. The
 * simulator is the model of the likelihood.
 *
 * The recorded requests are flown with trial parameters. The estimates are the parameters with
 * which the simulated latencies agree with the recorded ones. A parameter that the recordings do
 * not determine keeps its value, and the finding gives the reason. */
#ifndef SIM_IDENTIFY_IDENTIFY_H
#define SIM_IDENTIFY_IDENTIFY_H

#include "identify/fit.h"
#include "identify/judge.h"

enum finding_state {
    FOUND,
    AT_BOUND, /* found to be as small as it can be; high is the end of the interval */
    GIVEN,    /* the configuration says it, or the caller holds it */
    UNKNOWN   /* the recordings do not determine it: `why` */
};

struct finding {
    enum finding_state state;
    /* low and high: 90%, where found; where unknown what it may be for all that is known, both 0 if
     * it stands with another parameter. */
    double value, low, high;
    char why[160];
    double moves; /* unknown: the part by which a mean of the requests that were not fitted moves,
                     at the most, as it goes from low to high (identify_depend) */
};

/* An unknown parameter that moves a mean by this part leaves a prediction open. */
static const double finding_matters = 0.01;

struct identify_options {
    struct trial_setting setting;
    const struct recording *recordings; /* [n_recordings] of one deployment */
    size_t n_recordings;
    size_t n_predicted; /* behind them in the list: what was found is judged by these as well */
    /* How the configuration was read: other presets are tried in its place. NULL: none is. */
    const struct study *study;
    bool hold[N_PARAMETERS];    /* at what the configuration says */
    bool release[N_PARAMETERS]; /* although the configuration or the profile says it */
};

enum { IDENTIFY_NOTICES = 6 };

struct identified {
    struct finding of[N_PARAMETERS];
    double start[N_PARAMETERS], value[N_PARAMETERS];
    double covariance[N_PARAMETERS][N_PARAMETERS]; /* of units; 0 where not fitted */
    double unit[N_PARAMETERS];
    double along[N_PARAMETERS];   /* units by which the others go with one of fit_followed */
    struct deployment deployment; /* what the configuration says, with what was found */
    double scale[N_LATENCIES];
    size_t n_flights, n_fitted, n_spans;
    char rival[768];   /* what explains the runs better than the configuration; "": nothing does */
    char rival_is[96]; /* it in a few words */
    char doubt[384];   /* that the search has ended in the wrong place; "" */
    char notices[IDENTIFY_NOTICES][768]; /* where the configuration may be another deployment's */
    size_t n_notices;
};

int identify(const struct identify_options *options, struct identified *found,
             struct ifl_error *error);

/* A draw of the parameters from what the fit leaves open; 0: the fitted values. */
int identified_draw(const struct identified *found, uint64_t draw, double value[N_PARAMETERS],
                    struct ifl_error *error);

/* What of the unknown the rest of the runs depends on: fills `moves`. No latency of the rest is
 * read; of runs that are fitted whole the rest is all of it. */
int identify_depend(const struct identify_options *options, struct identified *found,
                    struct ifl_error *error);

/* Lines on what the fit cannot explain: another preset, model or GPU, a cache that the
 * configuration lacks. `after`: flown with the found values, a trial a recording. */
int identify_suspect(const struct identify_options *options, const struct trial *after,
                     struct identified *found, struct ifl_error *error);

#endif
