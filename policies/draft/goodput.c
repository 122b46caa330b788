/* The number of guesses with the most tokens a second: SmartSpec (Liu et al., Optimizing
 * Speculative Decoding for Serving Large Language Models Using Goodput, arXiv:2406.14066). If each
 * of k guesses is accepted with probability a, a step of n requests yields (1 - a^(k+1)) / (1 - a)
 * tokens of each and takes
 *
 *     step_s + token_s n (1 + k) + context_token_s (tokens of context) + draft_s k
 *
 * a is a moving average over the steps with guesses. It cannot be measured without guesses, so
 * after probe_steps steps without guesses one step has one guess. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct goodput {
    int32_t tokens, probe_steps;
    double weight, start_rate;
    double step_s, token_s, context_token_s, draft_s;
};

struct average {
    double rate;
    int32_t tokens; /* guesses of the next step */
    int32_t n_idle; /* steps in a row without guesses */
};

#define SECONDS(name, dflt, doc)                                                                   \
    {                                                                                              \
#name, IFL_REAL, offsetof(struct goodput, name), dflt, 0, 1e3, NULL, "s", doc              \
    }

static const struct ifl_param params[] = {
    {"tokens", IFL_INT, offsetof(struct goodput, tokens), 5, 0, 64, NULL, "tokens",
     "most guesses for a request in a step"},
    {"probe_steps", IFL_INT, offsetof(struct goodput, probe_steps), 32, 1, 1 << 20, NULL, "steps",
     "after this many steps without guesses, one step has one guess"},
    {"weight", IFL_REAL, offsetof(struct goodput, weight), 0.1, 0.001, 1, NULL, "",
     "weight of the last step in the moving average of the acceptance rate"},
    {"start_rate", IFL_REAL, offsetof(struct goodput, start_rate), 0.7, 0, 1, NULL, "",
     "acceptance rate before the first step"},
    SECONDS(step_s, 0.01, "time of a step without tokens"),
    SECONDS(token_s, 2e-5, "time that each computed token adds"),
    SECONDS(context_token_s, 5e-8, "time that each token of context adds"),
    SECONDS(draft_s, 1e-3, "time that each guess adds: a pass of the draft model"),
};

static struct average *average_of(const void *self)
{
    return ifl_state(self);
}

static double goodput(const struct goodput *p, double rate, double n, double context, int32_t k)
{
    double n_yielded = 1, held = 1;
    for (int32_t i = 0; i < k; i++)
        n_yielded += held *= rate;
    return n * n_yielded /
           (p->step_s + p->token_s * n * (1 + k) + p->context_token_s * context + p->draft_s * k);
}

static int32_t best(const struct goodput *p, double rate, double n, double context)
{
    int32_t best_k = 0;
    for (int32_t k = 1; k <= p->tokens; k++)
        if (goodput(p, rate, n, context, k) > goodput(p, rate, n, context, best_k))
            best_k = k;
    return best_k;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct goodput *p = self;
    (void)limits;
    (void)error;
    *average_of(self) = (struct average){p->start_rate, best(p, p->start_rate, 1, 0), 0};
    return 0;
}

/* Counts the verified guesses: those that held, and one more for each request in which not all
 * held. */
static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct goodput *p = self;
    struct average *average = average_of(self);
    const struct ifl_results results = ifl_results(end);
    double n_held = 0, n_seen = 0, n = 0, context = 0;
    (void)view;
    for (size_t i = 0; i < results.n; i++) {
        const struct ifl_result *of = &results.of[i];
        const int32_t held = of->n_sampled > 0 ? of->n_sampled - 1 : 0;
        const int32_t n_computed = ifl_n_computed(of->request);
        const bool decodes = n_computed > of->request->n_prefill;
        n += decodes;
        context += decodes ? n_computed : 0;
        n_held += of->n_draft > 0 ? held : 0;
        n_seen += of->n_draft > 0 ? ifl_min(held + 1, of->n_draft) : 0;
    }
    if (n_seen > 0)
        average->rate += p->weight * (n_held / n_seen - average->rate);
    if (n == 0)
        return;
    average->n_idle = n_seen > 0 ? 0 : average->n_idle + 1;
    average->tokens = best(p, average->rate, n, context);
    if (average->tokens == 0 && average->n_idle >= p->probe_steps)
        average->tokens = ifl_min(1, p->tokens);
}

static int32_t for_all(const void *self, const struct ifl_view *view)
{
    (void)view;
    return average_of(self)->tokens;
}

static int32_t ask(const void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)r;
    return for_all(self, view);
}

static int32_t most(const void *params_of)
{
    return ((const struct goodput *)params_of)->tokens;
}

static const struct ifl_draft_ops ops = {.ask = ask, .most = most, .for_all = for_all};

const struct ifl_policy policy_draft_goodput = {
    .kind = IFL_DRAFT,
    .name = "goodput",
    .doc = "the number of guesses with most tokens per second (SmartSpec)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct goodput),
    .state_bytes = sizeof(struct average),
    .init = init,
    .on_step_end = on_step_end,
    .ops.draft = &ops,
};
