/* Features of a cluster that cannot be combined with engines. */
#ifndef SIM_CONFIG_CHECK_ENGINE_H
#define SIM_CONFIG_CHECK_ENGINE_H

#include "config/config.h"

/* Returns a text about a feature of cluster.pools that engines lack, and what was expected; NULL:
 * there is none, or no engine executes. */
const char *engine_refuses_pools(const struct config *config);

#endif
