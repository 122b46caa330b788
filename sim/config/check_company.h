/* Keys that have no effect without another one. */
#ifndef SIM_CONFIG_CHECK_COMPANY_H
#define SIM_CONFIG_CHECK_COMPANY_H

#include "config/config.h"

/* Refuses a key that is said, is not at its default, and needs another key that is not said. Where
 * that one says itself that it is off, it is accepted: so does a sweep that turns it on, and what a
 * run writes of itself. */
int check_company(const struct node *root, const struct config *config, struct ifl_error *error);

#endif
