/* By prefix caches, else by session, else by the lowest rate: the routers "kvaware" and "session"
 * of vLLM's production stack (src/vllm_router/routers/routing_logic.py, commit a6c01db, 2026-08).
 *
 *   - the replica that holds the most of the prompt, if it lacks at most max_missing_tokens of it;
 *   - else the replica that the request's session hashes to;
 *   - without a session, the replica with the lowest rate of requests; a replica that never had a
 *     request goes before all others.
 *
 * The source sends each cached chunk to a controller, and takes the first holder of the first
 * chunk. Here the replica with the longest match is known without delay; of several the first is
 * taken. The source hashes a session to a ring, this module to a number: both keep sessions in
 * place as long as no replica comes or goes. With by_cache: false it is the session router alone.
 * The lowest rate needs a look at each replica. */
#include "inflight/policy.h"
#include "inflight/random.h"

#include "rates.h"

struct cached {
    bool by_cache;
    int32_t max_missing_tokens, max_rated_reqs;
    int64_t window_ns;
};

static const struct ifl_param params[] = {
    {"by_cache", IFL_BOOL, offsetof(struct cached, by_cache), 1, 0, 1, NULL, "",
     "first look for a replica that has cached the prompt"},
    {"max_missing_tokens", IFL_INT, offsetof(struct cached, max_missing_tokens), 2000, 0, 1 << 30,
     NULL, "tokens", "most prompt tokens that this replica may lack"},
    {"window_s", IFL_TIME, offsetof(struct cached, window_ns), 60, 1e-3, 1e9, NULL, "s",
     "time over which a replica's request rate is counted"},
    {"max_rated_reqs", IFL_INT, offsetof(struct cached, max_rated_reqs), 1 << 20, 1, 1 << 28, NULL,
     "requests", "most requests that count for rates, the latest ones"},
};

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct cached *p = self;
    (void)limits;
    return rates_create(ifl_state(self), ifl_n_replicas(self), (size_t)p->max_rated_reqs,
                        p->window_ns, error);
}

static void finish(void *self)
{
    rates_destroy(ifl_state(self));
}

/* Returns fleet->n if too much of the prompt is missing at every replica, or if none holds any. */
static size_t best_holder(const struct cached *p, const struct ifl_fleet *fleet)
{
    int32_t n_cached;
    const size_t best = ifl_longest_cached(fleet, IFL_PREFILLS, &n_cached);
    const bool enough = n_cached >= fleet->request->n_prompt - p->max_missing_tokens;
    return enough ? best : fleet->n;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct cached *p = self;
    struct rates *rates = ifl_state(self);
    const uint32_t session = fleet->request->session;
    const size_t holder = p->by_cache ? best_holder(p, fleet) : fleet->n;
    if (holder < fleet->n)
        return ifl_send(holder);
    if (session)
        return ifl_send(
            ifl_nth(fleet, IFL_PREFILLS, (size_t)(ifl_mix(session) % ifl_up(fleet, IFL_PREFILLS))));
    rates_slide(rates, fleet->now_ns);
    return ifl_send(rates_lowest(rates, fleet));
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    rates_note(ifl_state(self), replica, 1, fleet->now_ns);
}

static const struct ifl_route_ops ops = {.pick = pick, .on_sent = on_sent};

const struct ifl_policy policy_route_cached = {
    .kind = IFL_ROUTE,
    .name = "cached",
    .doc = "replica with most of the prompt cached, else by session, else lowest request rate",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct cached),
    .state_bytes = sizeof(struct rates),
    .init = init,
    .finish = finish,
    .ops.route = &ops,
};
