/* Session affinity: every turn of a session goes to the replica that its number hashes to, so that
 * the turn finds the conversation's K/V. Requests without a session take turns. */
#include "inflight/policy.h"
#include "inflight/random.h"

static size_t pick(const void *self, const struct ifl_routing *routing)
{
    const uint32_t session = routing->request->session;
    (void)self;
    return (size_t)((session ? ifl_mix(session) : routing->n_routed) % routing->n);
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_session = {
    .kind = IFL_ROUTE,
    .name = "session",
    .doc = "a session stays at one replica",
    .ops.route = &ops,
};
