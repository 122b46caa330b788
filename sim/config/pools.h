/* The pools of a cluster: maps of keys, each laid over the rest of its configuration. */
#ifndef SIM_CONFIG_POOLS_H
#define SIM_CONFIG_POOLS_H

#include "base/tree.h"
#include "config/config.h"

#define POOL_ROLES "prefill|decode|both" /* of enum pool_role, from 1 on */

/* Checks that cluster.pools, if there, is a map of names to maps of keys that pools may have. */
int pools_check_shape(const struct node *root, struct ifl_error *error);
/* Finds values that stand where a map belongs, in the root and in its pools, before other layers
 * cover them. Before layer_expand. */
int pools_check_maps(const struct node *root, struct ifl_error *error);
/* 0: cluster.pools is not there, or empty. The functions below take roots of the right shape. */
size_t pools_n(const struct node *root);
/* Makes the configuration of pool i, which the caller frees; NULL on failure. */
int pools_lay(const struct node *root, size_t i, struct node **laid, struct ifl_error *error);
/* The name and the count of pool i. */
int pools_describe(const struct node *root, size_t i, struct pool_config *pool,
                   struct ifl_error *error);
/* Checks what the pools are together, once they are read. */
int pools_check(const struct node *root, const struct config *config, struct ifl_error *error);
/* Whether the error is at a key that no pool has as its own. `laid`: what pools_lay made, with the
 * presets below it. */
bool pools_share_place(const struct node *laid, const struct ifl_error *error);
/* Names the pool in an input error of its keys. Returns the code. */
int pools_blame(const struct node *root, size_t i, struct ifl_error *error);

#endif
