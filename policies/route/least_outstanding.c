/* Least outstanding requests: the replica with the fewest requests, running, waiting or swapped;
 * ties go to the first. Where reports are old (cluster.news), the router adds what it has sent
 * since, as vLLM's data-parallel balancer does (v0.33, v1/engine/core_client.py); a gateway that
 * scrapes metrics alone does not, and sends all requests between two reports to one replica. */
#include "inflight/policy.h"

struct least {
    bool counts_sent;
};

static const struct ifl_param params[] = {
    {"counts_sent", IFL_BOOL, offsetof(struct least, counts_sent), 1, 0, 1, NULL, "",
     "add the requests sent since a replica's last report (cluster.news)"},
};

static size_t least_reported(const struct ifl_fleet *fleet)
{
    size_t best = ifl_nth(fleet, IFL_PREFILLS, 0);
    for (size_t k = 1; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        if (ifl_outstanding(ifl_load_of(fleet, i)) < ifl_outstanding(ifl_load_of(fleet, best)))
            best = i;
    }
    return best;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct least *p = self;
    return ifl_send(p->counts_sent ? ifl_least(fleet, IFL_PREFILLS) : least_reported(fleet));
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_least_outstanding = {
    .kind = IFL_ROUTE,
    .name = "least-outstanding",
    .doc = "the replica with the fewest requests, running or not",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct least),
    .ops.route = &ops,
};
