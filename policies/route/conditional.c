/* Conditional disaggregation. The decode replica is chosen first: the replica with the fewest
 * requests. If it has both roles, it computes the prompt, too, if little of the prompt is missing
 * in its cache, or if no replica has the role of prompts alone. Otherwise the prompt goes to the
 * replica with the fewest waiting tokens: of those for prompts alone, or if there are none, of
 * those with both roles.
 *
 * Dynamo (1.6.1, conditional_disagg.rs, IslBounding): little is fewer than 2048 tokens and less
 * than 0.7 of the prompt. llm-d (520af47, prefix_based_pd_decider): fewer than nonCachedTokens,
 * whatever their share. */
#include "inflight/policy.h"

struct conditional {
    int32_t local_tokens;
    double local_frac;
};

static const struct ifl_param params[] = {
    {"local_tokens", IFL_INT, offsetof(struct conditional, local_tokens), 2048, 0, 1 << 30, NULL,
     "tokens", "with fewer tokens to compute, the decode replica computes the prompt, ..."},
    {"local_frac", IFL_REAL, offsetof(struct conditional, local_frac), 0.7, 0, 2, NULL,
     "of the prompt", "... if they are also less than this fraction; above 1: any fraction"},
};

/* Returns the best replica among those with exactly these roles; fleet->n: there is none. */
static size_t prefill_of(const struct ifl_fleet *fleet, unsigned roles)
{
    size_t best = fleet->n;
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        const struct ifl_load *load = ifl_load_of(fleet, i);
        if (load->roles == roles &&
            (best == fleet->n ||
             load->n_waiting_tokens < ifl_load_of(fleet, best)->n_waiting_tokens))
            best = i;
    }
    return best;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct conditional *p = self;
    const size_t decode = ifl_least(fleet, IFL_DECODES), alone = prefill_of(fleet, IFL_PREFILLS);
    const int32_t n_prompt = fleet->request->n_prompt;
    const int32_t n = n_prompt - ifl_cached_tokens(fleet, decode);
    const bool local = n < p->local_tokens && n < p->local_frac * n_prompt;
    const bool both = ifl_load_of(fleet, decode)->roles & IFL_PREFILLS;
    if (both && (local || alone == fleet->n))
        return ifl_send(decode);
    return ifl_send_pair(alone == fleet->n ? prefill_of(fleet, IFL_PREFILLS | IFL_DECODES) : alone,
                         decode);
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_conditional = {
    .kind = IFL_ROUTE,
    .name = "conditional",
    .doc = "a separate prefill replica only if much of the prompt must be computed (Dynamo, llm-d)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct conditional),
    .ops.route = &ops,
};
