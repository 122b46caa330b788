/* What a configuration lacks, or has too much of, for a search for its capacity. */
#ifndef SIM_CLI_CAPACITY_CHECK_H
#define SIM_CLI_CAPACITY_CHECK_H

#include "config/config.h"

int capacity_check(const struct config *config, struct ifl_error *error);

#endif
