/* An order: the longest prompt goes first. */
#include <inflight/policy.h>

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = -of[i]->n_prompt; /* smaller keys first, ties by arrival */
}

static const struct ifl_order_ops ops = {.rank = rank};

static const struct ifl_policy longest_prompt = {
    .kind = IFL_ORDER,
    .name = "longest-prompt",
    .doc = "the longest prompt first",
    .ops.order = &ops,
};

IFL_POLICIES(&longest_prompt);
