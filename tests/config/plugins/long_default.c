/* Two texts with defaults, the second of which has no room for its NUL. */
#include "plugin.h"

struct names {
    char fits[4], is_cut[4];
};

static const struct ifl_param params[] = {
    {"fits", IFL_TEXT, offsetof(struct names, fits), 0, 0, 4, "abc", "", ""},
    {"is_cut", IFL_TEXT, offsetof(struct names, is_cut), 0, 0, 4, "abcd", "", ""},
};

static const struct ifl_policy names = {
    .kind = IFL_ORDER,
    .name = "names",
    .doc = "",
    .params = params,
    .n_params = 2,
    .params_bytes = sizeof(struct names),
    .ops.order = &order_ops,
};

IFL_EXPORT const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 1, {&names}};
