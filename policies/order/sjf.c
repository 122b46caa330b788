/* Shortest job first, by predicted output length (an oracle where the prediction is the truth).
 * Requests without a prediction rank by what they declared. */
#include "inflight/policy.h"

static int64_t expected_output(const struct ifl_request *r)
{
    return r->n_predicted >= 0 ? r->n_predicted : r->n_max_new;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = expected_output(of[i]);
}

static const struct ifl_order_ops ops = {.rank = rank};

const struct ifl_policy policy_order_sjf = {
    .kind = IFL_ORDER,
    .name = "sjf",
    .doc = "shortest predicted output first; the prediction is the trace's true length",
    .ops.order = &ops,
};
