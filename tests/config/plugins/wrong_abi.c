/* A list of another ABI; nothing behind its number may be read. */
#include "plugin.h"

static const struct ifl_policy order = ORDER("from-the-future");

IFL_EXPORT const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI + 1, sizeof(struct ifl_policy), 1, {&order}};
