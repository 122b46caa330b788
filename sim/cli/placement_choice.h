/* Placements that follow from the capacities of candidates (config/placement.h): all on a front of
 * cost and rate, and the chosen one.
 *
 * A placement has a number of replicas of each pool. The rate that it serves, in requests a second,
 * is
 *
 *     min(n_p goodput_p, n_d goodput_d)   phases that were searched apart
 *     n goodput                           n pairs of a prefill and a decode replica
 *     as flown                            candidates that were flown as a whole
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
    bool grown; /* a replica more than another one that, flown, missed the objectives */
    /* Flown as a whole, at this rate; 0: it was not. */
    double flown_rps;
    struct capacity_trial flown;
};

struct choices {
    struct choice *of; /* [n] by cost */
    size_t n, cap;
    bool priced;
    struct objective objectives[MAX_OBJECTIVES]; /* of flights */
    size_t n_objectives;
};

/* Goodput a unit of cost; 0 where the candidate has none. */
double choice_value(const struct placement *placement, const struct capacity_row *rows, size_t i);
/* The candidate with the most goodput a unit of cost, of those that search pool `pool` where phases
 * are searched apart; SIZE_MAX: none. Among equals the one with fewer GPUs, then the first. */
size_t choice_best(const struct placement *placement, const struct capacity_row *rows, size_t pool);

/* rows: one a candidate. The caller owes choices_free, after an error, too. */
int choices_find(const struct placement *placement, const struct capacity_row *rows,
                 struct choices *choices, struct ifl_error *error);
void choices_free(struct choices *choices);
/* The chosen one, or NULL. */
struct choice *choices_chosen(const struct choices *choices);
/* Adds what follows from `from` with one replica more in the pool that carries least beyond the
 * target; it is the chosen one from then on. False: the budget is too small, or it is not known
 * which pool that is. *code is negative after an error. */
bool choices_grow(const struct placement *placement, const struct capacity_row *rows,
                  struct choices *choices, int *code, struct ifl_error *error);

#endif
