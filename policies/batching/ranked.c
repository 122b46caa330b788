/* All requests, on the device or not, are ranked anew at every step, and the best run: preemptive
 * scheduling at the granularity of a step.
 *
 * Requests get tokens in rank order until the seats or the token budget of the step are used up. A
 * request that lacks blocks takes those of the preempt module's victim, the last ranked request
 * without tokens. If there is no victim, the walk ends. Other requests on the device stay there and
 * pause (FastServe, Wu et al., arXiv 2305.05920, leaves them to proactive swapping). */
#include "inflight/policy.h"

#include "make_room.h"

enum counts { COUNTS_EVERYONE, COUNTS_PROMPTS };

struct ranked {
    int32_t max_seqs;
    int32_t max_batched_tokens;
    int32_t budget_counts;
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct ranked, max_seqs), 256, 1, 1 << 20, NULL, "sequences",
     "most sequences of a step"},
    {"max_batched_tokens", IFL_INT, offsetof(struct ranked, max_batched_tokens), 2048, 1, 1 << 30,
     NULL, "tokens", "token budget of a step; a longer prompt runs alone"},
    {"budget_counts", IFL_CHOICE, offsetof(struct ranked, budget_counts), COUNTS_EVERYONE, 0, 0,
     "everyone|prompts", "",
     "the token budget counts prompts and decodes, or only prompts (FastServe)"},
};

/* ---- the walk ---- */

struct walk {
    unsigned lists;
    int32_t n_seqs, n_running_ahead;
};

/* Tokens of r in this step; 0: the budget is used up. */
static int32_t share_of(const struct ranked *p, const struct ifl_step *step,
                        const struct ifl_request *r)
{
    const int32_t n_counted =
        p->budget_counts == COUNTS_PROMPTS ? step->n_prefill_tokens : step->n_tokens;
    const int32_t left = p->max_batched_tokens - n_counted, todo = ifl_todo(r);
    return todo <= left || step->n_tokens == 0 ? todo : 0;
}

static enum ifl_verdict give_other(struct ifl_step *step, const struct ifl_request *r, int32_t n,
                                   const struct walk *walk)
{
    const enum ifl_verdict verdict = start_making_room(step, r, n, walk->n_running_ahead);
    if (verdict == IFL_NEVER_FITS)
        ifl_reject(step, r);
    return verdict;
}

/* Gives r its tokens; returns false to end the walk. */
static bool visit(const struct ranked *p, struct ifl_step *step, const struct ifl_request *r,
                  struct walk *walk)
{
    if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
        return true;
    const int32_t n = share_of(p, step, r);
    if (n == 0 || walk->n_seqs + r->n_seqs > p->max_seqs)
        return false;
    const bool runs = r->state == IFL_RUNNING;
    const enum ifl_verdict verdict = !runs                     ? give_other(step, r, n, walk)
                                     : ifl_give(step, r, n, 0) ? IFL_YES
                                                               : IFL_NO_BLOCKS;
    if (verdict == IFL_YES)
        walk->n_seqs += r->n_seqs;
    if (verdict == IFL_NO_HOST_BLOCKS)
        walk->lists &= ~(unsigned)IFL_IN_WAITING;
    return verdict != IFL_NO_BLOCKS;
}

static void walk_lists(const struct ranked *p, const struct ifl_view *view, struct ifl_step *step,
                       unsigned lists)
{
    struct walk walk = {.lists = lists, .n_running_ahead = (int32_t)view->n_running};
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (walk.n_seqs < p->max_seqs && (r = ifl_next(step, walk.lists, &cursor))) {
        walk.n_running_ahead -= r->state == IFL_RUNNING;
        if (!ifl_gave_way_now(view, step, r) && ifl_todo(r) > 0 && !visit(p, step, r, &walk))
            return;
    }
}

/* True if every waiting request that a walk could reach would find a seat and tokens, and would be
 * refused for want of host memory; the walk then leaves out the others. (Under this module a
 * swapped request decodes, since its prompt was computed in one step.) */
static bool none_may_start(const struct ranked *p, struct ifl_step *step)
{
    int32_t longest;
    return step->n_waiting > 0 && step->n_in_prefill == 0 &&
           ifl_ask_for_all(step, &longest) == IFL_NO_HOST_BLOCKS &&
           longest <= p->max_batched_tokens - p->max_seqs;
}

/* Waiting requests are ranked only if one of them may start. A plan without effect walks over them
 * all the same: the step notes why a request is refused. */
static void walk_all(const struct ranked *p, const struct ifl_view *view, struct ifl_step *step)
{
    const unsigned on_device = IFL_IN_RUNNING | IFL_IN_SWAPPED;
    if (none_may_start(p, step)) {
        walk_lists(p, view, step, on_device);
        if (step->n_requests + step->n_preempted + step->n_swapped_in > 0)
            return;
    }
    walk_lists(p, view, step, on_device | IFL_IN_WAITING);
}

/* ---- when ranks do not matter ---- */

/* True if all running requests decode, and seats, tokens and blocks suffice for every running and
 * waiting request: then the rank order is irrelevant. */
static bool all_may_run(const struct ranked *p, const struct ifl_view *view, struct ifl_step *step)
{
    const int32_t n_seqs = step->n_running_seqs, block_tokens = view->limits->block_tokens;
    const int32_t n_most_blocks = (step->max_drafts + block_tokens) / block_tokens;
    const struct ifl_demand most = {p->max_seqs, p->max_batched_tokens, step->n_free_blocks};
    struct ifl_demand demand = {n_seqs, n_seqs, (int64_t)n_seqs * n_most_blocks};
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    if (view->n_running == 0 || view->n_swapped > 0 || step->n_in_prefill > 0 ||
        view->limits->contiguous || !ifl_add_waiting(step, &demand, &most))
        return false;
    for (int32_t left = step->n_waiting; left > 0 && (r = ifl_next(step, IFL_IN_WAITING, &cursor));
         left--)
        if (ifl_ask_beyond(step, r, ifl_todo(r), (int32_t)demand.n_blocks) != IFL_YES)
            return false;
    return true;
}

/* Returns false, and changes nothing, if the blocks for the tokens ahead do not fit. */
static bool run_all(struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    if (!ifl_schedule_ready(step, 0))
        return false;
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        (void)ifl_start(step, r, ifl_todo(r));
    return true;
}

/* ---- the plan ---- */

/* True if every request is on the device, decodes and has a seat: the rank order is irrelevant. */
static bool all_decode(const struct ranked *p, const struct ifl_view *view, struct ifl_step *step)
{
    const int32_t n_running = (int32_t)view->n_running;
    return view->n_waiting + view->n_swapped + (size_t)step->n_in_prefill == 0 &&
           step->n_running_seqs <= p->max_seqs && n_running <= p->max_batched_tokens;
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ranked *p = self;
    if (all_decode(p, view, step) && ifl_schedule_ready(step, 0)) {
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
        return;
    }
    if (all_may_run(p, view, step) && run_all(step))
        return;
    walk_all(p, view, step);
    /* The remaining work of running requests only falls, and their age only grows. If another
     * request may pass them in rank order, the order's `steady` bounds the promise. */
    ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_ranked = {
    .kind = IFL_BATCHING,
    .name = "ranked",
    .doc =
        "runs the best ranked requests, on the device or not; preempts at every step (FastServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct ranked),
    .ops.batching = &ops,
};
