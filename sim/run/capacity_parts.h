/* What the searches for a rate and for a number of replicas share. */
#ifndef SIM_RUN_CAPACITY_PARTS_H
#define SIM_RUN_CAPACITY_PARTS_H

#include "run/capacity.h"

struct search {
    const struct capacity_options *options;
    struct capacity *found;
    uint64_t member;               /* of the ensemble; 0: the fitted costs */
    struct ifl_summary *summaries; /* [n_replications] of the last trial */
    double *sample;                /* [n_replications] */
    double (*margin_of)(const struct capacity_trial *trial);
    int code;
    struct ifl_error *error;
};

/* The trial at that rate, on so many replicas (0: as configured), or NULL. */
const struct capacity_trial *capacity_known(const struct search *search, double rate_rps,
                                            int32_t replicas);
/* Flies it, unless it is known. NULL after an error, or after too many trials. */
const struct capacity_trial *capacity_try(struct search *search, double rate_rps, int32_t replicas);

/* What searches find a root of: the margin of the means, and those of both ends of the intervals.
 */
double capacity_margin(const struct capacity_trial *trial);
double capacity_margin_low(const struct capacity_trial *trial);
double capacity_margin_high(const struct capacity_trial *trial);
/* Bit i: the trial misses objective i. */
uint32_t capacity_missed(const struct capacity *found, const struct capacity_trial *trial);

/* The fewest replicas for capacity.target_rps, from `start` on. Fills what `found` has of them. */
void capacity_find_replicas(struct search *search, int32_t start);

#endif
