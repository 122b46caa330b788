/* Checks cluster.router against what the cluster is. */
#ifndef SIM_CONFIG_CHECK_ROUTER_H
#define SIM_CONFIG_CHECK_ROUTER_H

#include "base/tree.h"
#include "config/config.h"

/* root: where an error is shown, if it has the keys. */
int router_check(const struct node *root, const struct config *config, struct ifl_error *error);

#endif
