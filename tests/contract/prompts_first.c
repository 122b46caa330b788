/* A batching module that triggers the contract's rarer hooks: prompts start before decodes ask for
 * blocks, so that a plan may undo a start of its own. */
#include <inflight/policy.h>

enum { MAX_SEQS = 24, MAX_TOKENS = 60 };

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)self;
    (void)view;
    while (step->n_running_seqs < MAX_SEQS && step->n_tokens < MAX_TOKENS &&
           (r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (!ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            break;
    ifl_decode_one_by_one(step, 0);
}

static const struct ifl_batching_ops ops = {.plan = plan};

static const struct ifl_policy prompts_first = {
    .kind = IFL_BATCHING,
    .name = "prompts-first",
    .doc = "prompts, then decodes, which may take a prompt's start back",
    .ops.batching = &ops,
};

IFL_POLICIES(&prompts_first);
