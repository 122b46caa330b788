/* An order that uses a part of its own without asking for its bytes, or with -DA_KEY leaves out a
 * key. */
#include <inflight/policy.h>

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
#if defined(OF_STATE)
    *(int64_t *)ifl_state(self) = (int64_t)r->serial;
#elif defined(OF_CLIENT)
    *(int64_t *)ifl_client(self, r) = (int64_t)r->serial;
#elif defined(A_KEY)
    (void)self;
    (void)r;
#else
    *(int64_t *)ifl_mine(self, r) = (int64_t)r->serial;
#endif
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
#if defined(A_KEY)
    n--;
#endif
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->arrival_ns;
}

static const struct ifl_order_ops ops = {.rank = rank};
static const struct ifl_policy forgets = {
    .kind = IFL_ORDER,
    .name = "forgets",
    .doc = "asks for no bytes",
    .on_join = on_join,
    .ops.order = &ops,
};

IFL_POLICIES(&forgets);
