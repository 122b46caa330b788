/* Checks cluster.migration. */
#ifndef SIM_CONFIG_MIGRATION_H
#define SIM_CONFIG_MIGRATION_H

#include "base/tree.h"
#include "config/config.h"

/* root: an error gets the place of its key in this tree, if it is there. */
int migration_check(const struct node *root, const struct config *config, struct ifl_error *error);

#endif
