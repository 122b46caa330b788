/* Presets as rival models of the recorded runs: the candidates that preset_rival.c fits.
 *
 * Each preset that comes with inflight is simulated once, with the numbers that were found for the
 * configuration. Presets with the same latencies are one candidate. The fitted times of host and
 * front end absorb a part of the error of a wrong preset, so the comparison leaves out the median
 * of the logarithms of each latency (its level). It only selects the candidates that are worth a
 * fit of their own. All candidates have the kernels of the configuration: the scheduler is in
 * question, not the numbers of a profile. */
#ifndef SIM_IDENTIFY_CONTEST_H
#define SIM_IDENTIFY_CONTEST_H

#include "identify/fit_parts.h"
#include "identify/rival.h"

/* Most candidates, and latencies that are compared: TTFT and TPOT. */
enum { CONTEST_KEPT = 16, CONTEST_COMPARED = TPOT + 1 };

/* Simulated latencies of the fitted requests, recording after recording. */
struct latencies {
    double *s[CONTEST_COMPARED]; /* [n] */
    size_t n;
};

struct candidate {
    char name[64], alike[112]; /* a preset, and the presets with the same latencies */
    bool is_first_come;        /* it serves in the order of arrival */
    bool is_own;               /* the configuration's own preset, with the pool of its sizing
                                  rule */
    struct config config;
    double value[N_PARAMETERS];
    struct latencies flown;
    double seen;              /* gain over the base without levels, nats a request */
    bool is_fitted, is_shown; /* is_shown: its fit was significantly better than the
                                 configuration's */
    struct rival_gain gain;   /* gain of its best fit over that of the configuration */
    double scale[N_LATENCIES];
};

struct contest {
    struct quest *quest;
    /* The base with which candidates are compared and from which they start: the configuration with
     * the values found. */
    const struct config *base_config;
    const double *base_value;
    struct latencies base;
    double base_lost, base_scale[CONTEST_COMPARED];
    bool is_free[N_PARAMETERS]; /* in fits of candidates */
    double *r;                  /* [n] scratch */
    struct candidate *kept[CONTEST_KEPT];
    size_t n_kept;
};

/* True if the code ends the identification. Any other error only excludes the candidate. */
static inline bool contest_ends(int rc)
{
    return rc == IFL_E_NOMEM || rc == IFL_E_INTERRUPTED;
}

/* Fills the candidates. The caller must call contest_close, after an error, too. */
int contest_open(struct contest *contest, struct quest *quest, struct ifl_error *error);
void contest_close(struct contest *contest);
/* Sets which parameters are fitted for candidates: those that the search of `quest` has fitted or
 * had at a bound. */
void contest_free(struct contest *contest, const struct quest *quest);
/* Makes the first candidate the base of a new list of candidates, in which it stays as the
 * configuration's own. */
int contest_again(struct contest *contest, struct ifl_error *error);

#endif
