/* Two policies of one kind and name. */
#include "plugin.h"

static const struct ifl_policy one = ORDER("twin"), other = ORDER("twin");

IFL_EXPORT const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 2, {&one, &other}};
