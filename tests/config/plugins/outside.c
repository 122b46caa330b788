/* A parameter behind the end of its struct. */
#include "plugin.h"

static const struct ifl_param params[] = {{"weight", IFL_REAL, 4, 0, 0, 1, NULL, "", ""}};

static const struct ifl_policy outside = {
    .kind = IFL_ORDER,
    .name = "outside",
    .doc = "",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(double),
    .ops.order = &order_ops,
};

IFL_EXPORT const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 1, {&outside}};
