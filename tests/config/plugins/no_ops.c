/* A batching policy that has no plan. */
#include "inflight/policy.h"

static const struct ifl_policy mute = {.kind = IFL_BATCHING, .name = "mute", .doc = ""};

__attribute__((visibility("default"))) const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 1, {&mute}};
