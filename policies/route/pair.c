/* Names a prefill replica and a decode replica for each request, each by its own rule. If a replica
 * with both roles is the answer to both, it computes the whole request.
 *
 * With order pull the decode replica is chosen when the prompt is done, as DistServe does
 * (simdistserve, schedule_decode), the proxy of vLLM's examples (toy_proxy_server.py) and
 * TensorRT-LLM (openai_disagg_service.py, context first). Turns are those of arrival. */
#include "inflight/policy.h"

enum by { BY_REQUESTS, BY_TOKENS, BY_BLOCKS, BY_TURNS };

struct pair {
    int32_t prefill, decode;
};

static const struct ifl_param params[] = {
    {"prefill", IFL_CHOICE, offsetof(struct pair, prefill), BY_TOKENS, 0, 0,
     "requests|tokens|blocks|turns", "",
     "prefill replica: the one with the fewest requests, the fewest waiting tokens, the most free "
     "blocks, or in turn"},
    {"decode", IFL_CHOICE, offsetof(struct pair, decode), BY_REQUESTS, 0, 0,
     "requests|tokens|blocks|turns", "",
     "decode replica, by the same rules; with order pull by the loads when the prompt is done, or "
     "in turn of arrival"},
};

/* The load of a replica by the rule `by`; the least wins. */
static int64_t burden(const struct ifl_load *load, int32_t by)
{
    switch (by) {
    case BY_TOKENS:
        return load->n_waiting_tokens;
    case BY_BLOCKS:
        return -(int64_t)load->n_free_blocks;
    default:
        return ifl_outstanding_and_sent(load);
    }
}

static bool is_better(const struct ifl_load *load, const struct ifl_load *than, int32_t by)
{
    const int64_t more = burden(load, by) - burden(than, by);
    return more < 0 || (more == 0 && by == BY_TOKENS &&
                        ifl_outstanding_and_sent(load) < ifl_outstanding_and_sent(than));
}

static size_t best_of(const struct ifl_fleet *fleet, unsigned role, int32_t by)
{
    const size_t n = ifl_up(fleet, role);
    if (by == BY_TURNS)
        return ifl_nth(fleet, role, (size_t)(fleet->n_routed % n));
    size_t best = ifl_nth(fleet, role, 0);
    const size_t first = best;
    const bool in_a_row = ifl_nth(fleet, role, n - 1) == first + n - 1; /* one pool, mostly */
    const struct ifl_load *least = ifl_load_of(fleet, best);
    for (size_t k = 1; k < n; k++) {
        const size_t i = in_a_row ? first + k : ifl_nth(fleet, role, k);
        const struct ifl_load *load = ifl_load_of(fleet, i);
        if (is_better(load, least, by)) {
            best = i;
            least = load;
        }
    }
    return best;
}

/* The router's note for a request: both replicas. */
static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct pair *p = self;
    const size_t prefill = best_of(fleet, IFL_PREFILLS, p->prefill),
                 decode = best_of(fleet, IFL_DECODES, p->decode);
    *fleet->note = prefill | (uint64_t)decode << 32;
    return ifl_send_pair(prefill, decode);
}

static size_t pick_decode(const void *self, const struct ifl_fleet *fleet)
{
    const struct pair *p = self;
    const size_t prefill = (uint32_t)*fleet->note, named = (size_t)(*fleet->note >> 32);
    size_t best = fleet->n;
    if (p->decode == BY_TURNS)
        return named;
    for (size_t k = 0; k < ifl_up(fleet, IFL_DECODES); k++) {
        const size_t i = ifl_nth(fleet, IFL_DECODES, k);
        if (i != prefill && (best == fleet->n ||
                             is_better(ifl_load_of(fleet, i), ifl_load_of(fleet, best), p->decode)))
            best = i;
    }
    return best;
}

static const struct ifl_route_ops ops = {.pick = pick, .pick_decode = pick_decode};

const struct ifl_policy policy_route_pair = {
    .kind = IFL_ROUTE,
    .name = "pair",
    .doc = "a prefill and a decode replica, each the least loaded",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct pair),
    .sends_pairs = true,
    .ops.route = &ops,
};
