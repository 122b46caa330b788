/* No speculation: each step computes one token of a request that decodes. */
#include "inflight/policy.h"

static const struct ifl_draft_ops ops = {0};

const struct ifl_policy policy_draft_none = {
    .kind = IFL_DRAFT,
    .name = "none",
    .doc = "no guesses",
    .ops.draft = &ops,
};
