/* The pools of a cluster: maps of keys, each laid over the rest of its configuration. */
#ifndef SIM_CONFIG_POOLS_H
#define SIM_CONFIG_POOLS_H

#include "base/tree.h"
#include "config/config.h"

#define POOL_ROLES "prefill|decode|both" /* of enum pool_role, from 1 on */

/* Checks that cluster.pools, if there, is a map of names to maps of keys that pools may have. */
int pools_check_shape(const struct node *root, struct ifl_error *error);
/* Finds values in place of maps, in the root and in its pools, before other layers override them.
 * Call it before layer_expand. */
int pools_check_maps(const struct node *root, struct ifl_error *error);
/* Returns the number of pools; 0: cluster.pools is missing or empty. The functions below require
 * roots of the right shape (pools_check_shape). */
size_t pools_n(const struct node *root);
/* Makes the configuration of pool i, which the caller frees; NULL on failure. */
int pools_lay(const struct node *root, size_t i, struct node **laid, struct ifl_error *error);
/* The name and the count of pool i. */
int pools_describe(const struct node *root, size_t i, struct pool_config *pool,
                   struct ifl_error *error);
/* Checks the combination of the pools, once they are read. */
int pools_check(const struct node *root, const struct config *config, struct ifl_error *error);
/* True if the error is at a key that no pool has for itself. `laid`: the result of pools_lay, with
 * the presets below it. */
bool pools_share_place(const struct node *laid, const struct ifl_error *error);
/* Adds the name of the pool to an input error about its keys. Returns the error's code. */
int pools_blame(const struct node *root, size_t i, struct ifl_error *error);

#endif
