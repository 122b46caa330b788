/* Two sound policies. */
#include "plugin.h"

static const struct ifl_param lifo_params[] = {
    {"weight", IFL_REAL, 0, 0.5, 0, 1, NULL, "", "makes no difference"},
};

static const struct ifl_policy lifo = {
    .kind = IFL_ORDER,
    .name = "lifo",
    .doc = "last come, first served",
    .params = lifo_params,
    .n_params = 1,
    .params_bytes = sizeof(double),
    .ops.order = &order_ops,
};
static const struct ifl_policy plain = ORDER("plain");

IFL_EXPORT const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 2, {&lifo, &plain}};
