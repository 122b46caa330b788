/* Static batching: a batch is formed, runs until its last member has finished, and only then the
 * next is formed.
 *
 * As in the FasterTransformer scheduler of the Sarathi-Serve repository: members that finish early
 * leave the batch and cost no padding, whole prompts share the first step, and the admit module
 * reserves room for the longest request, so that nobody is ever preempted. */
#include "inflight/policy.h"

struct static_batching {
    int32_t max_seqs;
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct static_batching, max_seqs), 128, 1, 1 << 20, NULL,
     "sequences", "largest batch"},
};

/* Requests of a list start, in rank order, until one must wait. */
static void start_from(const struct static_batching *p, struct ifl_step *step, enum ifl_list list)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_running_seqs < p->max_seqs && (r = ifl_next(step, list, &cursor))) {
        const enum ifl_verdict verdict = ifl_start(step, r, ifl_todo(r));
        if (verdict == IFL_NEVER_FITS)
            ifl_reject(step, r);
        else if (verdict != IFL_YES)
            return;
    }
}

/* Only reached where the admit module reserved too little. */
static void decode_one_by_one(struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = 0; i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        while (r->state == IFL_RUNNING && ifl_schedule(step, r, 1, 0) != IFL_YES)
            if (!ifl_make_room(step, r))
                break;
    }
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    if (view->n_running == 0 && view->n_swapped == 0) {
        start_from(self, step, IFL_IN_WAITING);
        return;
    }
    if (!ifl_schedule_ready(step, 0))
        decode_one_by_one(step);
    if (step->n_preempted > 0)
        return;
    start_from(self, step, IFL_IN_SWAPPED);
    if (step->n_swapped_in == 0)
        ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_static = {
    .kind = IFL_BATCHING,
    .name = "static",
    .doc = "a batch runs until its last member has finished; nothing joins (FasterTransformer)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct static_batching),
    .ops.batching = &ops,
};
