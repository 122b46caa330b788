/* Policies of plug-ins: each call of their functions is marked (base/guard.h). Built-in policies
 * are called directly, at no cost. */
#ifndef SIM_CONFIG_GUARDED_POLICY_H
#define SIM_CONFIG_GUARDED_POLICY_H

#include "inflight/policy.h"

/* A copy of policy `bare` of the plug-in at `path`, its functions marked. Only for instances that
 * module_create makes. NULL without memory. To be freed with guarded_policy_free. */
const struct ifl_policy *guarded_policy_create(const struct ifl_policy *bare, const char *kind,
                                               const char *path);
void guarded_policy_free(const struct ifl_policy *policy);

#endif
