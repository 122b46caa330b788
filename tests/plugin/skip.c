/* An out-of-tree admission that skips long prompts while any request runs. */
#include <inflight/policy.h>

enum { LONG_TOKENS = 10 };

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    (void)self;
    (void)view;
    (void)n;
    if (r->n_prompt > LONG_TOKENS && step->n_running_requests > 0)
        return ifl_admission(IFL_SKIP, 0);
    return ifl_admission(IFL_YES, ifl_n_tokens(r));
}

static const struct ifl_admit_ops ops = {.ask = ask};

static const struct ifl_policy skip = {
    .kind = IFL_ADMIT,
    .name = "skip-long",
    .doc = "long prompts start alone; shorter ones pass them",
    .ops.admit = &ops,
};

const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 1, {&skip}};
