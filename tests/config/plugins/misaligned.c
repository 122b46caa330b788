/* A parameter within its struct, where no number of its type may lie. */
#include "plugin.h"

static const struct ifl_param params[] = {
    {"flag", IFL_BOOL, 1, 0, 0, 1, NULL, "", ""},
    {"weight", IFL_REAL, 4, 0, 0, 1, NULL, "", ""},
};

static const struct ifl_policy misaligned = {
    .kind = IFL_ORDER,
    .name = "misaligned",
    .doc = "",
    .params = params,
    .n_params = 2,
    .params_bytes = 2 * sizeof(double),
    .ops.order = &order_ops,
};

IFL_EXPORT const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 1, {&misaligned}};
