/* Prefix affinity by what the replicas' caches hold, after the rule of SGLang's first cache-aware
 * router (2024-12), whose own tree is prefix-tree:
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
     "least share of the prompt that must be cached to follow it"},
    {"balance_abs", IFL_INT, offsetof(struct prefix, balance_abs), 32, 0, 1 << 30, NULL, "requests",
     "out of balance: the most and the least loaded differ by more than this, ..."},
    {"balance_rel", IFL_REAL, offsetof(struct prefix, balance_rel), 1.0001, 1, 1e6, NULL, "",
     "... and the most loaded has more than this many times the least"},
};

/* Of the replicas, ties by number. */
struct extremes {
    size_t least, best_hit, least_routed;
    int32_t min_outstanding, max_outstanding; /* requests */
    int32_t n_cached;                         /* tokens of the best hit */
    uint64_t min_routed;
};

static void look_at(struct extremes *found, const struct ifl_fleet *fleet, size_t i)
{
    const struct ifl_load_counts counts = ifl_counts_of(fleet, i);
    const int32_t outstanding = (int32_t)counts.n_outstanding;
    const int32_t n_cached = ifl_cached_tokens(fleet, i);
    if (outstanding < found->min_outstanding) {
        found->least = i;
        found->min_outstanding = outstanding;
    }
    if (outstanding > found->max_outstanding)
        found->max_outstanding = outstanding;
    if (n_cached > found->n_cached) {
        found->best_hit = i;
        found->n_cached = n_cached;
    }
    if (counts.n_routed < found->min_routed) {
        found->least_routed = i;
        found->min_routed = counts.n_routed;
    }
}

static struct extremes survey(const struct ifl_fleet *fleet)
{
    struct extremes found = {.min_outstanding = INT32_MAX, .min_routed = UINT64_MAX};
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++)
        look_at(&found, fleet, ifl_nth(fleet, IFL_PREFILLS, k));
    return found;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct prefix *p = self;
    const struct extremes found = survey(fleet);
    const int32_t most = found.max_outstanding, least = found.min_outstanding;
    if (most - least > p->balance_abs && most > p->balance_rel * least)
        return ifl_send(found.least);
    const bool follows =
        found.n_cached > 0 && found.n_cached >= p->min_match_frac * fleet->request->n_prompt;
    return ifl_send(follows ? found.best_hit : found.least_routed);
}

static const struct ifl_route_ops ops = {pick};

const struct ifl_policy policy_route_prefix = {
    .kind = IFL_ROUTE,
    .name = "prefix",
    .doc = "where the most of the prompt is cached, while the load is balanced",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct prefix),
    .ops.route = &ops,
};
