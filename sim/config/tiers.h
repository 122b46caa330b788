/* Checks serving.kv.tiers, and serving.swap. */
#ifndef SIM_CONFIG_TIERS_H
#define SIM_CONFIG_TIERS_H

#include "base/tree.h"
#include "config/config.h"

/* "host", "disk" or "store". */
const char *tier_name(int tier);
/* What a replica with tiers may not be, as "KEY is VALUE, expected ..."; NULL: it may have some. */
const char *tiers_against(const struct config *config);
/* What no replica may be that moves K/V beside its steps, in the same words. */
const char *config_against_moves(const struct config *config);
int tiers_check(const struct node *root, const struct config *config, struct ifl_error *error);
int swap_check(const struct node *root, const struct config *config, struct ifl_error *error);

#endif
