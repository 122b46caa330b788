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
    bool divided;            /* lives are of several pools, or of none */
    size_t only;             /* the pool of all lives until then, n: there were none */
    size_t n_replicas;
    struct whole_file file; /* pools.csv */
};

/* Opens the file, if `path` is not NULL. Zeroed memory is valid for pools_close. */
int pools_open(struct pools *pools, const struct ifl_recorder_options *options,
               struct ifl_error *error);
void pools_close(struct pools *pools);

/* The name of the replica's pool; "" for -1, a request that came to none. */
static inline const char *pools_name(const struct pools *pools, int32_t replica)
{
    if (replica < 0)
        return "";
    ifl_assert((size_t)replica < pools->n_replicas);
    return pools->of[pools->pool_of[replica]].name;
}

/* Adds a life that counts; they come in order of arrival. `all`: the tally of all lives so far but
 * this one, for as many as the pools were opened for. */
void pools_take(struct pools *pools, const struct life *life, const struct tally *all);
/* Adds a move that counts, once to each pool that has one of its ends. */
void pools_move(struct pools *pools, const struct ifl_move_record *move);
/* A row for each pool. `run`: what the row of all pools, `whole`, is made of. */
int pools_write(struct pools *pools, int32_t point, const struct summary_input *run,
                const struct ifl_summary *whole, struct ifl_error *error);

#endif
