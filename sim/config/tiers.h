/* Checks serving.kv.tiers, and serving.swap. */
#ifndef SIM_CONFIG_TIERS_H
#define SIM_CONFIG_TIERS_H

#include "base/tree.h"
#include "config/config.h"

/* "host", "disk" or "store". */
const char *tier_name(int tier);
/* Returns which key forbids tiers, as "KEY is VALUE, expected ..."; NULL: the replica may have
 * tiers. */
const char *tiers_against(const struct config *config);
/* Returns which key forbids moving K/V while steps run, in the same form; NULL: none does. */
const char *config_against_moves(const struct config *config);
int tiers_check(const struct node *root, const struct config *config, struct ifl_error *error);
int swap_check(const struct node *root, const struct config *config, struct ifl_error *error);

#endif
