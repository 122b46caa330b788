/* Identification: estimates numbers of a deployment that no document gives, from recorded runs. The
 * simulator is the model of the likelihood.
 *
 * The recorded requests are simulated with trial parameters. The estimates are the parameters with
 * which the simulated latencies agree with the recorded ones. A parameter that the recordings do
 * not determine keeps its value, and the finding gives the reason. */
#ifndef SIM_IDENTIFY_IDENTIFY_H
#define SIM_IDENTIFY_IDENTIFY_H

#include "identify/fit.h"
#include "identify/judge.h"

enum finding_state {
    FOUND,
    AT_BOUND, /* found to be as small as it can be; high is the end of the interval */
    GIVEN,    /* the configuration has a value, or the caller holds it fixed */
    UNKNOWN   /* the recordings do not determine it: `why` */
};

struct finding {
    enum finding_state state;
    /* low and high: the 90% interval if FOUND. If UNKNOWN: the range of possible values, both 0 if
     * it cannot be separated from another parameter. */
    double value, low, high;
    char why[160];
    double moves; /* UNKNOWN: the largest relative change of a mean of the requests that were not
                     fitted, as the parameter goes from low to high (identify_depend) */
};

/* An unknown parameter that changes a mean by this share leaves a prediction open. */
static const double finding_matters = 0.01;

struct identify_options {
    struct trial_setting setting;
    const struct recording *recordings; /* [n_recordings] of one deployment */
    size_t n_recordings;
    size_t n_predicted; /* further recordings behind these in the list, only to judge what was
                           found */
    /* How the configuration was read: other presets are tried in its place. NULL: none is. */
    const struct study *study;
    bool hold[N_PARAMETERS];    /* hold the parameter at the value in the configuration */
    bool release[N_PARAMETERS]; /* estimate the parameter although the configuration or the profile
                                   has a value */
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
    char rival[768];   /* a model that explains the runs better than the configuration; "": none
                          does */
    char rival_is[96]; /* it in a few words */
    char doubt[384];   /* reason to doubt the end of the search; "": none */
    char notices[IDENTIFY_NOTICES][768]; /* where the configuration may be another deployment's */
    size_t n_notices;
};

int identify(const struct identify_options *options, struct identified *found,
             struct ifl_error *error);

/* Draws the parameters from the uncertainty of the fit; draw 0: the fitted values. */
int identified_draw(const struct identified *found, uint64_t draw, double value[N_PARAMETERS],
                    struct ifl_error *error);

/* Fills `moves`: how much the requests that were not fitted depend on the unknown parameters. Their
 * latencies are not read. If a run is fitted as a whole, all its requests are used. */
int identify_depend(const struct identify_options *options, struct identified *found,
                    struct ifl_error *error);

/* Adds notices about what the fit cannot explain: another preset, model or GPU, or a cache that the
 * configuration lacks. `after`: one trial per recording, simulated with the values found. */
int identify_suspect(const struct identify_options *options, const struct trial *after,
                     struct identified *found, struct ifl_error *error);

#endif
