/* A batching: decodes first, then as many tokens of prompts as the TPOT objectives allow. A step
 * that took longer than the tightest objective of its decodes halves the token budget of the next
 * step; any other step adds `more_tokens` to it. */
#include <inflight/policy.h>

#include "inflight/minmax.h"

struct decode_first {
    int32_t max_seqs, least_tokens, most_tokens, more_tokens;
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct decode_first, max_seqs), 256, 1, 1 << 20, NULL,
     "sequences", "most sequences on the device"},
    {"least_tokens", IFL_INT, offsetof(struct decode_first, least_tokens), 32, 1, 1 << 20, NULL,
     "tokens", "least prompt tokens of a step"},
    {"most_tokens", IFL_INT, offsetof(struct decode_first, most_tokens), 2048, 1, 1 << 20, NULL,
     "tokens", "most prompt tokens of a step"},
    {"more_tokens", IFL_INT, offsetof(struct decode_first, more_tokens), 32, 0, 1 << 20, NULL,
     "tokens", "added to the budget after a step that was fast enough"},
};

static int32_t share_of(const struct ifl_step *step, const struct ifl_request *r, int32_t budget)
{
    const int32_t left = budget - step->n_prefill_tokens;
    return ifl_min(ifl_todo(r), left);
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct decode_first *p = self;
    const int32_t budget = *(const int32_t *)ifl_state(self);
    struct ifl_cursor begun = {{0}}, others = {{0}};
    const struct ifl_request *r;
    (void)view;
    ifl_decode_one_by_one(step, 0);
    while (step->n_prefill_tokens < budget && (r = ifl_next(step, IFL_IN_PREFILL, &begun)))
        ifl_give(step, r, share_of(step, r, budget), 0);
    while (step->n_preempted == 0 && step->n_prefill_tokens < budget &&
           step->n_running_seqs < p->max_seqs &&
           (r = ifl_next(step, IFL_IN_WAITING | IFL_IN_SWAPPED, &others)))
        if (!ifl_settled(step, r, ifl_start(step, r, share_of(step, r, budget))))
            return;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct decode_first *p = self;
    int32_t *budget = ifl_state(self);
    (void)limits;
    *budget = p->most_tokens;
    if (p->least_tokens > p->most_tokens)
        return ifl_fail(error, IFL_E_INPUT, "least_tokens is %d, expected at most most_tokens, %d",
                        p->least_tokens, p->most_tokens);
    return 0;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct decode_first *p = self;
    const struct ifl_results results = ifl_results(end);
    int32_t *budget = ifl_state(self);
    int64_t tightest_ns = IFL_NEVER;
    (void)view;
    for (size_t i = 0; i < results.n; i++)
        if (results.of[i].request->tpot_slo_ns < tightest_ns)
            tightest_ns = results.of[i].request->tpot_slo_ns;
    const bool slow = end->end_ns - end->start_ns > tightest_ns;
    *budget = slow ? *budget / 2 : *budget + p->more_tokens;
    *budget = ifl_max(*budget, p->least_tokens);
    *budget = ifl_min(*budget, p->most_tokens);
}

static const struct ifl_batching_ops ops = {.plan = plan};

static const struct ifl_policy decode_first = {
    .kind = IFL_BATCHING,
    .name = "decode-first",
    .doc = "decodes, then prompt tokens as the TPOT objectives allow",
    .params = params,
    .n_params = 4,
    .params_bytes = sizeof(struct decode_first),
    .state_bytes = sizeof(int32_t),
    .init = init,
    .on_step_end = on_step_end,
    .ops.batching = &ops,
};

IFL_POLICIES(&decode_first);
