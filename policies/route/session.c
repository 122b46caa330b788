/* Session affinity: every turn of a session goes to the replica that its number hashes to, so that
 * the turn finds the conversation's K/V. Requests without a session take turns. */
#include "inflight/policy.h"
#include "inflight/random.h"

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const uint32_t session = fleet->request->session;
    const uint64_t turn = session ? ifl_mix(session) : fleet->n_routed;
    const size_t k = (size_t)(turn % ifl_up(fleet, IFL_PREFILLS));
    (void)self;
    return ifl_send(ifl_nth(fleet, IFL_PREFILLS, k));
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_session = {
    .kind = IFL_ROUTE,
    .name = "session",
    .doc = "all requests of a session at one replica",
    .ops.route = &ops,
};
