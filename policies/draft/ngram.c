/* Guesses by look-up: the tokens behind an earlier occurrence of the last ones, as in prompt
 * look-up decoding and vLLM's ngram proposer (vllm/v1/spec_decode/ngram_proposer.py). If the last
 * tokens have not occurred before there are no guesses. A trace has no tokens, so a simulation
 * draws whether there is an occurrence; an engine searches the text (serving.speculation.proposer).
 */
#include "inflight/policy.h"
#include "inflight/random.h"

struct ngram {
    int32_t tokens;
    double match_frac;
};

static const struct ifl_param params[] = {
    {"tokens", IFL_INT, offsetof(struct ngram, tokens), 5, 0, 64, NULL, "tokens",
     "guesses if the last tokens have occurred before"},
    {"match_frac", IFL_REAL, offsetof(struct ngram, match_frac), 1, 0, 1, NULL, "of the steps",
     "fraction in which they have; drawn for each place of an answer"},
};

static int32_t ask(const void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct ngram *p = self;
    if (p->match_frac >= 1)
        return p->tokens;
    const uint64_t draw = ifl_policy_draw(ifl_plan(view), r, (uint32_t)ifl_n_out(r));
    return ifl_uniform(draw) < p->match_frac ? p->tokens : 0;
}

static int32_t for_all(const void *self, const struct ifl_view *view)
{
    const struct ngram *p = self;
    (void)view;
    return p->match_frac >= 1 ? p->tokens : -1;
}

static int32_t most(const void *params_of)
{
    return ((const struct ngram *)params_of)->tokens;
}

static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct ngram *p = self;
    return p->match_frac >= 1 ? ifl_always_steady(self, view, step) : (struct ifl_promise){0};
}

static const struct ifl_draft_ops ops = {.ask = ask, .most = most, .for_all = for_all};

const struct ifl_policy policy_draft_ngram = {
    .kind = IFL_DRAFT,
    .name = "ngram",
    .doc = "guesses if the last tokens have occurred before (prompt look-up, vLLM)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct ngram),
    .steady = steady,
    .ops.draft = &ops,
};
