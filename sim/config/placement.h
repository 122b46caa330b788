/* The candidates of capacity.placement: deployments of the pools of a cluster. The capacity of each
 * is searched, as a point of a sweep that the file does not write down.
 *
 * apart: one replica of one pool at a time. The other pool takes no time and has K/V blocks for all
 * requests, so that only the phase that is searched can miss the objectives. Each phase is then
 * replicated by itself (Zhong et al., DistServe, OSDI 2024, algorithm 1, for nodes with a fast
 * network between them).
 *
 * segments: one replica of each of the two pools. The stages of a pipeline are cut into segments,
 * one a node. Segments of both pools with the same number share a node, so that K/V moves within it
 * (algorithm 2, for nodes with a slow network between them). In a node
 *
 *     tensor_p pipeline_p + tensor_d pipeline_d <= node_gpus,
 *
 * and both replicas span the same number of nodes. If several numbers of nodes give the same
 * parallelism only the smallest is a candidate: the others differ from it in the number of nodes
 * alone.
 *
 * together: every combination of the parallelism and of the counts of all pools. */
#ifndef SIM_CONFIG_PLACEMENT_H
#define SIM_CONFIG_PLACEMENT_H

#include "config/config.h"

enum { MAX_PLACED_POOLS = 8 };

/* The part of a candidate for one pool. */
struct placed {
    int32_t tensor, pipeline;
    int32_t count; /* 0: the pool takes no time, and its GPUs do not count */
};

struct placement {
    struct placement_config config;
    double target_rps; /* 0: none */
    size_t n_pools;
    struct {
        char name[MAX_POOL_NAME];
        int32_t role;            /* enum pool_role */
        int32_t n_ranks;         /* parallel.data */
        int32_t free_blocks;     /* blocks for a pool that takes no time */
        double usd_per_gpu_hour; /* NaN: unknown */
    } pools[MAX_PLACED_POOLS];
    struct placed *of; /* [n][n_pools]; candidate i is combination i of the study */
    size_t n, cap;
    size_t n_outside; /* combinations outside the node or the budget */
};

/* If the file has the key capacity.placement: makes the candidates of a study that is being loaded,
 * and the sweep that tries them. The file may have no other sweep. */
struct study;
int placement_expand(struct study *study, struct ifl_error *error);
void placement_free(struct placement *placement);
/* Returns the study's placement, or NULL if it has none. */
const struct placement *study_placement(const struct study *study);

static inline const struct placed *placement_at(const struct placement *placement, size_t i)
{
    ifl_assert(i < placement->n);
    return &placement->of[i * placement->n_pools];
}

/* The number of GPUs of all pools of a candidate; their price, NaN unless each has a price. */
int32_t placement_gpus(const struct placement *placement, const struct placed *parts);
double placement_usd_per_hour(const struct placement *placement, const struct placed *parts);
/* True if neither budget is exceeded. */
bool placement_affords(const struct placement *placement, const struct placed *parts);
/* "prompts 2 x tp4 pp1, decodes 1 x tp2 pp2"; pools that take no time are left out. */
void placement_name(const struct placement *placement, const struct placed *parts, char *text,
                    size_t n_bytes);

/* Reads the configuration of a deployment, which need not be a candidate. On success the caller
 * must call config_finish. */
int placement_read(const struct study *study, const struct placed *parts, size_t replication,
                   struct config *config, struct ifl_error *error);

#endif
