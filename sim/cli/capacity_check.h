/* Checks a configuration before a search for its capacity: keys that the search needs, keys that
 * contradict each other, and keys that it excludes. */
#ifndef SIM_CLI_CAPACITY_CHECK_H
#define SIM_CLI_CAPACITY_CHECK_H

#include "config/config.h"

int capacity_check(const struct config *config, struct ifl_error *error);

#endif
