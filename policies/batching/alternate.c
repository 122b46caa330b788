/* Turns: a step of prompt chunks, then a step of decodes, never both (sarathi/core/scheduler/
 * simple_chunking_scheduler.py of the Sarathi-Serve repository, 2024).
 *
 * In a prefill turn prompts that have begun share the chunk; only if there is none, new prompts
 * start. A turn with nothing to do is skipped. So prompts delay decodes by one chunk at most, and a
 * prompt of many chunks takes every other step. A decode asks for a free block even if it needs
 * none (can_append_slot): Sarathi-Serve has one sequence a request; of a group each sequence asks.
 */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct alternate {
    int32_t max_seqs;
    int32_t chunk_tokens;
};

struct turn {
    bool decode; /* the next turn is one of decodes: the last step had prompts */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct alternate, max_seqs), 128, 1, 1 << 20, NULL, "sequences",
     "most sequences on the device"},
    {"chunk_tokens", IFL_INT, offsetof(struct alternate, chunk_tokens), 512, 1, 1 << 30, NULL,
     "tokens", "token budget of a prefill step"},
};

static struct turn *turn_of(const void *self)
{
    return ifl_state(self);
}

static int32_t share_of(const struct alternate *p, const struct ifl_step *step,
                        const struct ifl_request *r)
{
    const int32_t left = p->chunk_tokens - step->n_tokens, todo = ifl_todo(r);
    return ifl_min(todo, left);
}

static void continue_prompts(const struct alternate *p, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_PREFILL, &cursor)))
        ifl_give(step, r, share_of(p, step, r), 0);
}

/* Requests of a list start, in rank order, until one must wait. */
static void start_from(const struct alternate *p, struct ifl_step *step, enum ifl_list list)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_tokens < p->chunk_tokens && (r = ifl_next(step, list, &cursor))) {
        if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        if (step->n_running_seqs + r->n_seqs > p->max_seqs)
            return;
        if (!ifl_settled(step, r, ifl_start(step, r, share_of(p, step, r))))
            return;
    }
}

static void prefill(const struct alternate *p, struct ifl_step *step)
{
    continue_prompts(p, step);
    if (step->n_requests == 0 && step->n_preempted == 0 && step->n_swapped == 0)
        start_from(p, step, IFL_IN_WAITING);
}

static void decode(struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    if (ifl_schedule_ready(step, ifl_widest_group(step)))
        return;
    while ((r = ifl_next(step, IFL_IN_RUNNING, &cursor)))
        if (ifl_decodes(r) && ifl_n_now(r) == 0)
            ifl_give(step, r, 1 + ifl_drafts(step, r), r->n_seqs);
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct alternate *p = self;
    const struct turn *turn = turn_of(self);
    (void)view;
    if (!turn->decode) {
        prefill(p, step);
        if (step->n_requests > 0 || step->n_preempted > 0)
            return;
    }
    decode(step);
    if (step->n_preempted == 0)
        start_from(p, step, IFL_IN_SWAPPED);
    if (turn->decode && step->n_requests == 0 && step->n_preempted == 0)
        prefill(p, step);
    else if (!turn->decode)
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, ifl_widest_group(step));
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)view;
    (void)step;
    turn_of(self)->decode = step->n_prefill_tokens > 0;
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_alternate = {
    .kind = IFL_BATCHING,
    .name = "alternate",
    .doc =
        "alternates steps of prompt chunks and steps of decodes (simple chunking of Sarathi-Serve)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct alternate),
    .state_bytes = sizeof(struct turn),
    .on_step_start = on_step_start,
    .steady = ifl_always_steady,
    .ops.batching = &ops,
};
