/* Features of a cluster that cannot be combined with engines. */
#ifndef SIM_CONFIG_CHECK_ENGINE_H
#define SIM_CONFIG_CHECK_ENGINE_H

#include "config/config.h"

/* What cluster.pools has that engines do not do, and what was expected; NULL: nothing, or none
 * executes. */
const char *engine_refuses_pools(const struct config *config);

#endif
