/* A batching: in every step each running request decodes and one prompt starts. */
#include <inflight/policy.h>

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    (void)self;
    (void)view;
    if (!ifl_schedule_ready(step, 0)) /* all at once; one by one if blocks are short */
        ifl_decode_one_by_one(step, 0);
    const struct ifl_request *r = ifl_next(step, IFL_IN_WAITING | IFL_IN_SWAPPED, &cursor);
    if (r && step->n_preempted == 0)
        ifl_settled(step, r, ifl_start(step, r, ifl_todo(r)));
    ifl_promise(step, INT32_MAX, IFL_NEVER,
                0); /* a refused request stays refused while the step repeats */
}

static const struct ifl_batching_ops ops = {plan};

static const struct ifl_policy one_prompt = {
    .kind = IFL_BATCHING,
    .name = "one-prompt",
    .doc = "decodes, and one prompt per step",
    .ops.batching = &ops,
};

IFL_POLICIES(&one_prompt);
