/* Policies of plug-ins: each call of theirs is marked (guard.h). What is built in is called as it
 * is, and pays nothing. */
#ifndef SIM_GUARDED_POLICY_H
#define SIM_GUARDED_POLICY_H

#include "inflight/policy.h"

/* The same policy, its functions marked, of the plug-in at `path`. For instances that module_create
 * makes, alone. NULL without memory; guarded_policy_free's to free. */
const struct ifl_policy *guarded_policy_create(const struct ifl_policy *bare, const char *kind,
                                               const char *path);
void guarded_policy_free(const struct ifl_policy *policy);

#endif
