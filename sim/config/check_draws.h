/* Finds whether a run draws random numbers. If it draws none, all its replications are alike. */
#ifndef SIM_CONFIG_CHECK_DRAWS_H
#define SIM_CONFIG_CHECK_DRAWS_H

#include "config/config.h"

/* Refuses replications that would all be the same run: their interval would have no width. `root`:
 * the user's own keys; `config` has its pools. */
int replications_check(const struct node *root, const struct config *config,
                       struct ifl_error *error);

#endif
