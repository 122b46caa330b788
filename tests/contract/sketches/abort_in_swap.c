/* A client goes away while its request is being swapped out: the request is off all lists at once,
 * and on_leave comes when its K/V is free on both sides. Wasted tokens are charged to the client.
 */
#include "inflight/policy.h"

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    int64_t *wasted = ifl_client(self, r);
    (void)view;
    if (why == IFL_LEAVE_ABORTED)
        *wasted += r->n_prompt + ifl_n_out(r);
    if (why == IFL_LEAVE_FINISHED || why == IFL_LEAVE_MOVED)
        *wasted = 0;
}
/* Clients that often go away come last. */
static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->state == IFL_SWAPPED || of[i]->state == IFL_LOADED
                     ? 0
                     : *(const int64_t *)ifl_client(self, of[i]);
}
static const struct ifl_order_ops ops = {.rank = rank};
const struct ifl_policy abort_in_swap = {
    .kind = IFL_ORDER,
    .name = "abort-in-swap",
    .client_bytes = sizeof(int64_t),
    .on_leave = on_leave,
    .ops.order = &ops,
};
