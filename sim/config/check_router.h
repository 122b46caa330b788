/* Checks cluster.router against what the cluster is. */
#ifndef SIM_CONFIG_CHECK_ROUTER_H
#define SIM_CONFIG_CHECK_ROUTER_H

#include "base/tree.h"
#include "config/config.h"

/* root: where an error is shown, if it has the keys. */
int router_check(const struct node *root, const struct config *config, struct ifl_error *error);

/* What of the router's parameters has no effect, because another one says so; "": nothing. */
void router_unused(const struct config *config, char *text, size_t n_bytes);

#endif
