/* Prefix affinity, as SGLang's cache-aware router:
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

struct extremes {
    size_t least, most, best_hit, least_routed;
    int32_t n_cached; /* tokens of the best hit */
};

static struct extremes survey(const struct ifl_routing *routing)
{
    const struct ifl_load *of = routing->of;
    struct extremes found = {.n_cached = ifl_cached_tokens(routing, 0)};
    for (size_t i = 1; i < routing->n; i++) {
        if (ifl_outstanding(&of[i]) < ifl_outstanding(&of[found.least]))
            found.least = i;
        if (ifl_outstanding(&of[i]) > ifl_outstanding(&of[found.most]))
            found.most = i;
        const int32_t n_cached = ifl_cached_tokens(routing, i);
        if (n_cached > found.n_cached) {
            found.best_hit = i;
            found.n_cached = n_cached;
        }
        if (of[i].n_routed < of[found.least_routed].n_routed)
            found.least_routed = i;
    }
    return found;
}

static size_t pick(const void *self, const struct ifl_routing *routing)
{
    const struct prefix *p = self;
    const struct extremes found = survey(routing);
    const int32_t most = ifl_outstanding(&routing->of[found.most]);
    const int32_t least = ifl_outstanding(&routing->of[found.least]);
    if (most - least > p->balance_abs && most > p->balance_rel * least)
        return found.least;
    return found.n_cached > 0 && found.n_cached >= p->min_match_frac * routing->request->n_prompt
               ? found.best_hit
               : found.least_routed;
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
