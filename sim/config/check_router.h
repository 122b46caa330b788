/* Checks cluster.router against what the cluster is. */
#ifndef SIM_CONFIG_CHECK_ROUTER_H
#define SIM_CONFIG_CHECK_ROUTER_H

#include "base/tree.h"
#include "config/config.h"

/* Checks the router. root: an error gets the place of its key in this tree, if it is there. */
int router_check(const struct node *root, const struct config *config, struct ifl_error *error);

/* Writes which parameters of the router have no effect because of another one; "": none. */
void router_unused(const struct config *config, char *text, size_t n_bytes);

#endif
