/* Shortest job first. The length of a job is one of
 *   - the predicted output (an oracle where the prediction is the truth);
 *   - the rest of the predicted output (SRTF);
 *   - the prompt, which orders by prefill work alone: do not compare its results with the others.
 * Without a prediction the declared limit is the length. A request that has outlived its prediction
 * counts as one token from its end.
 *
 * Ageing subtracts tokens for every second since arrival. The rate is the same for all requests, so
 * the order of two waiting requests never changes: the key is length + rate x arrival. */
#include <math.h>

#include "inflight/policy.h"

enum job { JOB_OUTPUT, JOB_REMAINING, JOB_PROMPT };
enum { KEY_STEPS = 1000000 };

struct sjf {
    int32_t job;
    double ageing_tokens_per_s;
};

static const struct ifl_param params[] = {
    {"job", IFL_CHOICE, offsetof(struct sjf, job), JOB_OUTPUT, 0, 0, "output|remaining|prompt", "",
     "length of a job: the predicted output, what is left of it, or the prompt"},
    {"ageing_tokens_per_s", IFL_REAL, offsetof(struct sjf, ageing_tokens_per_s), 0, 0, 1e3, NULL,
     "tokens/s", "subtracted from a job's length for every second since its arrival"},
};

static int64_t job_tokens(const struct sjf *p, const struct ifl_request *r)
{
    const int64_t output = r->n_predicted >= 0 ? r->n_predicted : r->n_max_new;
    if (p->job == JOB_PROMPT)
        return r->n_prompt;
    if (p->job == JOB_OUTPUT)
        return output;
    return output > ifl_n_out(r) ? output - ifl_n_out(r) : 1;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct sjf *p = self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = KEY_STEPS * job_tokens(p, of[i]) +
                 llround(p->ageing_tokens_per_s * ifl_s_from_ns(of[i]->arrival_ns) * KEY_STEPS);
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = ifl_own_keys};

const struct ifl_policy policy_order_sjf = {
    .kind = IFL_ORDER,
    .name = "sjf",
    .doc = "shortest job first, by workload.predictor's output lengths or by prompts",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct sjf),
    .steady = ifl_always_steady,
    .ops.order = &ops,
};
