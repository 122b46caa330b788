/* The same number of guesses for every request in every step: vLLM's num_speculative_tokens,
 * SGLang's speculative_num_draft_tokens less the token that they follow, TensorRT-LLM's
 * max_draft_len. A tree has as many as it has nodes behind its root. */
#include "inflight/policy.h"

struct fixed {
    int32_t tokens;
};

static const struct ifl_param params[] = {
    {"tokens", IFL_INT, offsetof(struct fixed, tokens), 3, 0, 64, NULL, "tokens",
     "guesses for each request in a step; of a tree, its nodes"},
};

static int32_t ask(const void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
    (void)r;
    return ((const struct fixed *)self)->tokens;
}

static int32_t for_all(const void *self, const struct ifl_view *view)
{
    return ask(self, view, NULL);
}

static int32_t most(const void *params_of)
{
    return ((const struct fixed *)params_of)->tokens;
}

static const struct ifl_draft_ops ops = {.ask = ask, .most = most, .for_all = for_all};

const struct ifl_policy policy_draft_fixed = {
    .kind = IFL_DRAFT,
    .name = "fixed",
    .doc = "the same number of guesses for every request (vLLM, SGLang, TensorRT-LLM)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct fixed),
    .steady = ifl_always_steady,
    .ops.draft = &ops,
};
