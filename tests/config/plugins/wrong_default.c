/* A sound policy and one with an illegal default of a parameter: neither may be registered. */
#include "plugin.h"

static const struct ifl_param params[] = {{"weight", IFL_REAL, 0, 2, 0, 1, NULL, "", ""}};

static const struct ifl_policy first = ORDER("first");
static const struct ifl_policy second = {
    .kind = IFL_ORDER,
    .name = "second",
    .doc = "",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(double),
    .ops.order = &order_ops,
};

IFL_EXPORT const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 2, {&first, &second}};
