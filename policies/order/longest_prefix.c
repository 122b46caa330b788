/* Longest cached prefix first, SGLang's lpm (2026-08,
 * python/sglang/srt/managers/schedule_policy.py).
 *
 * With more than `most_waiting` waiting requests the order is that of arrival, because matching
 * would take too long. A request goes behind all others if the cache holds little of it and an
 * earlier waiting request has the same prefix: it will hit once that request has been computed.
 * Common prefixes are known from the trace's prefix groups or hash ids. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct longest_prefix {
    int32_t most_waiting;
    int32_t in_batch_tokens;
};

static const struct ifl_param params[] = {
    {"most_waiting", IFL_INT, offsetof(struct longest_prefix, most_waiting), 128, 0, 4096, NULL,
     "requests", "if more requests wait, first come, first served"},
    {"in_batch_tokens", IFL_INT, offsetof(struct longest_prefix, in_batch_tokens), 32, 1, 1 << 30,
     NULL, "tokens",
     "a request with at most this many cached tokens goes last if it shares this many with an "
     "earlier waiting one"},
};

static int32_t cached_tokens(const struct ifl_view *view, const struct ifl_request *r)
{
    struct ifl_step *step = ifl_plan(view);
    return step && r->state == IFL_WAITING ? ifl_hit(step, r).n_cached : 0;
}

/* Length of the common prefix of two prompts, as far as the trace tells. */
static int64_t shared_tokens(const struct ifl_request *a, const struct ifl_request *b)
{
    const uint32_t of_group = ifl_min(a->prefix_tokens, b->prefix_tokens);
    const int32_t shorter = ifl_min(a->n_prompt, b->n_prompt);
    int32_t n = 0;
    if (of_group > 0 && a->prefix_group == b->prefix_group)
        return of_group;
    while (n < a->n_hash_ids && n < b->n_hash_ids && a->hash_ids[n] == b->hash_ids[n])
        n++;
    return ifl_min((int64_t)n * a->hash_id_tokens, shorter);
}

/* True for all waiting requests that share a prefix except the first: they will hit what the first
 * one computes. */
static bool another_brings_it(const struct longest_prefix *p, const struct ifl_view *view,
                              const struct ifl_request *const *of, size_t n,
                              const struct ifl_request *r)
{
    if (cached_tokens(view, r) > p->in_batch_tokens)
        return false;
    for (size_t i = 0; i < n; i++)
        if (of[i] != r && ifl_queued_before(of[i], r) &&
            shared_tokens(of[i], r) >= p->in_batch_tokens &&
            cached_tokens(view, of[i]) <= p->in_batch_tokens)
            return true;
    return false;
}

static bool by_arrival(const struct longest_prefix *p, const struct ifl_view *view)
{
    return view->n_waiting > (size_t)p->most_waiting;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct longest_prefix *p = self;
    for (size_t i = 0; i < n; i++) {
        if (by_arrival(p, view))
            key[i] = 0; /* ties go by arrival, or by return to the queue */
        else if (another_brings_it(p, view, of, n, of[i]))
            key[i] = INT64_MAX;
        else
            key[i] = -(int64_t)cached_tokens(view, of[i]);
    }
}

/* Hits change with every step; the order of arrival does not. */
static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    return by_arrival(self, view) ? IFL_KEYS_OWN : IFL_KEYS_PLAN;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = keys};

const struct ifl_policy policy_order_longest_prefix = {
    .kind = IFL_ORDER,
    .name = "longest-prefix",
    .doc = "longest cached prefix first (SGLang's lpm)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct longest_prefix),
    .ops.order = &ops,
};
