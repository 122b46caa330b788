/* An out-of-tree order: last come, first served. */
#include <inflight/policy.h>

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = -of[i]->arrival_ns;
}

static const struct ifl_order_ops ops = {.rank = rank};

static const struct ifl_policy lifo = {
    .kind = IFL_ORDER,
    .name = "lifo",
    .doc = "last come, first served",
    .ops.order = &ops,
};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 1, {&lifo}};
