/* The requests that both runs have. */
#ifndef INFLIGHT_REPORTS_VALIDATE_PAIRS_H
#define INFLIGHT_REPORTS_VALIDATE_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/validate.h"

enum side { SIMULATED, MEASURED, N_SIDES };

struct pair {
    size_t row[N_SIDES]; /* row in each side's trace */
};

struct pairs {
    const struct ifl_trace *trace[N_SIDES];
    struct pair *of;     /* [n_all] finished on both sides; owned */
    size_t n;            /* judged pairs: the first of the list, by measured arrival */
    size_t n_all;        /* all pairs; those after the judged ones are in order of measured
                            arrival, too */
    size_t n_unfinished; /* pairs that one side did not finish */
    size_t n_alone[N_SIDES];
    bool by_id; /* paired by request id; else by order of arrival */
};

int pairs_match(const struct ifl_validation *validation, struct pairs *pairs,
                struct ifl_error *error);
void pairs_free(struct pairs *pairs);

/* ---- times of a request; IFL_NEVER if unknown ---- */

enum metric { TTFT, TPOT, E2E, NORMALIZED, QUEUE, PREFILL, DECODE, N_METRICS };
extern const char *const metric_name[N_METRICS]; /* as columns of reports are called */

int64_t pairs_metric_ns(const struct pairs *pairs, enum side side, enum metric metric, size_t i);
/* Returns the arrival in the time of the side's run. */
int64_t pairs_arrival_ns(const struct pairs *pairs, enum side side, size_t i);
int64_t pairs_finish_ns(const struct pairs *pairs, enum side side, size_t i);

/* The largest difference of a pair's arrivals in the two runs, relative to the first pair's. */
int64_t pairs_arrivals_apart_ns(const struct pairs *pairs);

/* Collects a metric of the pairs that have it on both sides, into value[side][n]; each array has
 * room for pairs->n. `of` selects the pairs; NULL: all. */
size_t pairs_gather(const struct pairs *pairs, enum metric metric, const bool *of,
                    int64_t *value[N_SIDES]);

#endif
