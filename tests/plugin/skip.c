/* Out-of-tree admissions: one skips long prompts while any request runs, two start none, ever; and
 * a batching module that stops at a refused request before it comes to the decodes. */
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

static struct ifl_admission wait(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    (void)self;
    (void)view;
    (void)step;
    (void)r;
    (void)n;
    return ifl_admission(IFL_WAIT, 0);
}

static const struct ifl_admit_ops wait_ops = {.ask = wait};

static const struct ifl_policy never = {
    .kind = IFL_ADMIT,
    .name = "never",
    .doc = "each request waits, and those behind it",
    .ops.admit = &wait_ops,
};

static struct ifl_admission pass_over(const void *self, const struct ifl_view *view,
                                      struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    (void)self;
    (void)view;
    (void)step;
    (void)r;
    (void)n;
    return ifl_admission(IFL_SKIP, 0);
}

static const struct ifl_admit_ops pass_ops = {.ask = pass_over};

static const struct ifl_policy passes = {
    .kind = IFL_ADMIT,
    .name = "passes-all",
    .doc = "each request is passed over",
    .ops.admit = &pass_ops,
};

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)self;
    (void)view;
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (!ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            return;
    ifl_decode_one_by_one(step, 0);
}

static const struct ifl_batching_ops batching_ops = {.plan = plan};

static const struct ifl_policy stops = {
    .kind = IFL_BATCHING,
    .name = "stops",
    .doc = "prompts, then decodes, but nothing behind a refusal",
    .ops.batching = &batching_ops,
};

const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 4, {&skip, &never, &passes, &stops}};
