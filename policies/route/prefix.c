/* Prefix affinity by what the replicas' caches hold, after the rule of SGLang's first cache-aware
 * router (2024-12); with that router's own tree it is prefix-tree:
 *   - if the load is out of balance, the replica with the fewest requests;
 *   - else the replica that caches most of the prompt, if at least min_match_frac of it;
 *   - else the replica with the fewest requests routed so far, so that caches fill evenly. */
#include "inflight/policy.h"

struct prefix {
    double min_match_frac;
    int32_t balance_abs;
    double balance_rel;
};

static const struct ifl_param params[] = {
    {"min_match_frac", IFL_REAL, offsetof(struct prefix, min_match_frac), 0.5, 0, 1, NULL, "",
     "least cached share of the prompt for which its replica is chosen; 0: any hit"},
    {"balance_abs", IFL_INT, offsetof(struct prefix, balance_abs), 32, 0, 1 << 30, NULL, "requests",
     "out of balance: the most and the least loaded differ by more than this, ..."},
    {"balance_rel", IFL_REAL, offsetof(struct prefix, balance_rel), 1.0001, 1, 1e6, NULL, "",
     "... and the most loaded has more than this many times the least"},
};

static int64_t n_requests(const struct ifl_fleet *fleet, size_t i)
{
    return ifl_counts_of(fleet, i).n_outstanding;
}

/* All ties go to the lower replica number. */
static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct prefix *p = self;
    const size_t idlest = ifl_least(fleet, IFL_PREFILLS);
    const int64_t least = n_requests(fleet, idlest);
    const int64_t most = n_requests(fleet, ifl_most(fleet, IFL_PREFILLS));
    int32_t n_cached;
    if (most - least > p->balance_abs && (double)most > p->balance_rel * (double)least)
        return ifl_send(idlest);
    const size_t holder = ifl_longest_cached(fleet, IFL_PREFILLS, &n_cached);
    const bool follows = n_cached > 0 && n_cached >= p->min_match_frac * fleet->request->n_prompt;
    return ifl_send(follows ? holder : ifl_least_routed(fleet, IFL_PREFILLS));
}

static const struct ifl_route_ops ops = {pick};

const struct ifl_policy policy_route_prefix = {
    .kind = IFL_ROUTE,
    .name = "prefix",
    .doc = "replica with most of the prompt cached, while the load is balanced",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct prefix),
    .ops.route = &ops,
};
