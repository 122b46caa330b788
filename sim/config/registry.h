/* Policy modules by their names: those that are built in, then those of plug-ins. */
#ifndef SIM_CONFIG_REGISTRY_H
#define SIM_CONFIG_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/policy.h"

const struct ifl_policy *registry_find(enum ifl_kind kind, const char *name);
const struct ifl_policy *registry_at(size_t i); /* NULL at the end */
bool registry_is_builtin(const struct ifl_policy *policy);
int registry_load_plugin(const char *path, struct ifl_error *error);

#endif
