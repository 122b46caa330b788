/* State and functions that the searches for a rate and for a number of replicas share. */
#ifndef SIM_RUN_CAPACITY_PARTS_H
#define SIM_RUN_CAPACITY_PARTS_H

#include "run/capacity.h"

struct search {
    const struct capacity_options *options;
    struct capacity *found;
    uint64_t member;               /* member of the ensemble; 0: the fitted costs */
    struct ifl_summary *summaries; /* [n_replications] summaries of the last trial */
    double *sample;                /* [n_replications] */
    double (*margin_of)(const struct capacity_trial *trial);
    int code;
    struct ifl_error *error;
};

/* Returns the trial at that rate with so many replicas (0: as configured), or NULL if there has
 * been none. */
const struct capacity_trial *capacity_known(const struct search *search, double rate_rps,
                                            int32_t replicas);
/* As capacity_known, but simulates the trial if there has been none. Returns NULL after an error or
 * after too many trials. */
const struct capacity_trial *capacity_try(struct search *search, double rate_rps, int32_t replicas);

/* The functions of which searches find a root: the margin of the means, and those of both ends of
 * the interval. */
double capacity_margin(const struct capacity_trial *trial);
double capacity_margin_low(const struct capacity_trial *trial);
double capacity_margin_high(const struct capacity_trial *trial);
/* Returns a bit set: bit i is set if the trial misses objective i. */
uint32_t capacity_missed(const struct capacity *found, const struct capacity_trial *trial);

/* Searches the fewest replicas for capacity.target_rps, beginning with `start`, and fills the
 * fields of search->found about replicas. */
void capacity_find_replicas(struct search *search, int32_t start);

#endif
