/* Checks serving.kv.tiers. */
#ifndef SIM_CONFIG_TIERS_H
#define SIM_CONFIG_TIERS_H

#include "base/tree.h"
#include "config/config.h"

int tiers_check(const struct node *root, const struct config *config, struct ifl_error *error);

#endif
