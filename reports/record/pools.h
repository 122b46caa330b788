/* The pools of a cluster in the reports: the name of each row's pool, and pools.csv. */
#ifndef INFLIGHT_REPORTS_POOLS_H
#define INFLIGHT_REPORTS_POOLS_H

#include "record/moves.h"
#include "record/summary.h"
#include "tables/whole_file.h"

struct pools {
    const struct ifl_pool *of; /* [n], borrowed; n 0: the cluster has none */
    size_t n;
    uint32_t *pool_of;       /* [replicas], owned */
    struct step_sums *steps; /* [n], owned: of each pool's steps */
    struct move_sums *moves; /* [n], owned: to and from each pool's replicas */
    struct tally *tallies;   /* [n], owned: of each pool's lives, once they are divided */
    bool divided;            /* lives belong to several pools, or to none */
    size_t only;             /* the pool of all lives so far; n: there are none */
    size_t n_replicas;
    struct whole_file file; /* pools.csv */
};

/* Opens the file, if `path` is not NULL. Zeroed memory is valid for pools_close. */
int pools_open(struct pools *pools, const struct ifl_recorder_options *options,
               struct ifl_error *error);
void pools_close(struct pools *pools);

/* Returns the name of the replica's pool; "" for replica -1, for a request that reached none. */
static inline const char *pools_name(const struct pools *pools, int32_t replica)
{
    if (replica < 0)
        return "";
    ifl_assert((size_t)replica < pools->n_replicas);
    return pools->of[pools->pool_of[replica]].name;
}

/* Adds a life that counts; lives must come in order of arrival. `all`: the tally of all lives
 * before this one, opened for as many lives as the pools. */
void pools_take(struct pools *pools, const struct life *life, const struct tally *all);
/* Adds a move that counts, once to each pool that has one of its ends. */
void pools_move(struct pools *pools, const struct ifl_move_record *move);
/* Writes a row for each pool. `run`: the input from which the row of all pools, `whole`, was made.
 */
int pools_write(struct pools *pools, int32_t point, const struct summary_input *run,
                const struct ifl_summary *whole, struct ifl_error *error);

#endif
