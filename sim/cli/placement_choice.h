/* What follows from the capacities of candidates (config/placement.h): placements, their front, and
 * one of them.
 *
 * A placement has so many replicas of each pool. Of phases searched apart it carries
 *
 *     min(n_p goodput_p, n_d goodput_d),
 *
 * of pairs n goodput, and of candidates flown as a whole what they carry. Its cost are dollars an
 * hour where all pools have prices, and GPUs otherwise. On the front are those that carry more than
 * all that cost no more. The algorithm's placement has the candidates with the most goodput a unit
 * of cost, each ceil(target / goodput) times; without a target as many as carry the most within the
 * budget. Chosen is the cheapest on the front that carries the target; without a target the one
 * that carries most within the budget, or without a budget the one that carries most a unit of
 * cost. */
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
