/* Policies of plug-ins: each call of their functions is marked (base/guard.h). Built-in policies
 * are called directly, at no cost. */
#ifndef SIM_CONFIG_GUARDED_POLICY_H
#define SIM_CONFIG_GUARDED_POLICY_H

#include "inflight/policy.h"

/* Returns a copy of policy `bare` of the plug-in at `path`, with its calls marked; NULL if memory
 * is short. It works only for instances that module_create makes. Free it with guarded_policy_free.
 */
const struct ifl_policy *guarded_policy_create(const struct ifl_policy *bare, const char *kind,
                                               const char *path);
void guarded_policy_free(const struct ifl_policy *policy);

#endif
