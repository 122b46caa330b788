/* Placements that follow from the capacities of candidates (config/placement.h): all on a front of
 * cost and rate, and the chosen one.
 *
 * A placement has a number of replicas of each pool. The rate that it serves, in requests a second,
 * is
 *
 *     min(n_p goodput_p, n_d goodput_d)   phases that were searched separately
 *     n goodput                           n pairs of a prefill and a decode replica
 *     as simulated                        candidates that were simulated as a whole
 *
 * Its cost is dollars an hour if all pools have prices, else GPUs. A placement is on the front if
 * it serves more than each placement that costs no more.
 *
 * The algorithm's placement has the candidates with the most goodput a unit of cost, each
 * ceil(target / goodput) times; without a target, as many of them as serve the most within the
 * budget.
 *
 * The chosen placement is
 *   - with a target, the cheapest on the front that serves it;
 *   - with a budget alone, the one that serves the most within it;
 *   - without both, the one that serves the most a unit of cost. */
#ifndef SIM_CLI_PLACEMENT_CHOICE_H
#define SIM_CLI_PLACEMENT_CHOICE_H

#include "cli/capacity_files.h"
#include "config/placement.h"

struct choice {
    struct placed parts[MAX_PLACED_POOLS];
    int32_t n_gpus;
    double usd_per_hour; /* NaN: unknown */
    double cost, rps;
    bool on_front, by_algorithm, chosen;
    bool grown; /* made by adding a replica to a placement that missed the objectives when it was
                   simulated */
    /* Rate at which the placement was simulated as a whole; 0: it was not. */
    double flown_rps;
    struct capacity_trial flown;
};

struct choices {
    struct choice *of; /* [n] by cost */
    size_t n, cap;
    bool priced;
    struct objective objectives[MAX_OBJECTIVES]; /* objectives of these simulations */
    size_t n_objectives;
};

/* Returns the goodput per unit of cost; 0 if the candidate has none. */
double choice_value(const struct placement *placement, const struct capacity_row *rows, size_t i);
/* Returns the candidate with the most goodput per unit of cost; if phases are searched separately,
 * among those for pool `pool`. SIZE_MAX: none. Of equal ones the one with fewer GPUs, then the
 * first. */
size_t choice_best(const struct placement *placement, const struct capacity_row *rows, size_t pool);

/* Finds the front and the chosen placement. rows: one per candidate. The caller must call
 * choices_free, after an error, too. */
int choices_find(const struct placement *placement, const struct capacity_row *rows,
                 struct choices *choices, struct ifl_error *error);
void choices_free(struct choices *choices);
/* The chosen one, or NULL. */
struct choice *choices_chosen(const struct choices *choices);
/* Adds a placement with one replica more than the chosen one, and chooses it: in the pool with the
 * least capacity beyond the target if phases are searched separately, otherwise in each pool.
 * Returns false if the budget is too small, if candidates were simulated as a whole, or after an
 * error; *code is then negative. */
bool choices_grow(const struct placement *placement, const struct capacity_row *rows,
                  struct choices *choices, int *code, struct ifl_error *error);

#endif
