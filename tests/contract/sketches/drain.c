/* An autoscaler that drains: one replica for every `requests_each` outstanding ones, looked at
 * every ten seconds; the router keeps a session at its replica until that one drains. */
#include "inflight/policy.h"

struct drain {
    int32_t requests_each;
};

static int32_t want(void *self, const struct ifl_fleet *fleet, int64_t *again_ns)
{
    const struct drain *p = self;
    int64_t n = 0;
    for (size_t i = 0; i < fleet->n; i++)
        n += ifl_outstanding(ifl_load_of(fleet, i));
    *again_ns = fleet->now_ns + 10000000000;
    return (int32_t)(1 + n / p->requests_each);
}
static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const size_t at = fleet->request->session % fleet->n;
    if (ifl_up(fleet, IFL_PREFILLS) == 0)
        return ifl_hold_back();
    if (fleet->request->n_prompt > 100000)
        return ifl_shed("the prompt is longer than 100,000 tokens");
    return ifl_send(*(const bool *)ifl_at(self, at) ? ifl_least(fleet, IFL_PREFILLS) : at);
}
static void on_replica(void *self, const struct ifl_fleet *fleet, size_t replica,
                       enum ifl_replica_state state)
{
    bool *is_closed = ifl_at(self, replica);
    (void)fleet;
    if (state == IFL_UP)
        *is_closed = false;
    if (state == IFL_DRAINING || state == IFL_GONE)
        *is_closed = true;
}
const struct ifl_scale_ops drain_scale = {.want = want};
const struct ifl_route_ops drain_route = {.pick = pick, .on_replica = on_replica};
