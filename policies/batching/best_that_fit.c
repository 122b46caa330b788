/* All requests, on the device or not, are ranked anew at every step. The best requests, as many as
 * tokens and seats suffice for, are chosen; then blocks are found for all of them together
 * (vllm-ltr, Fu et al., NeurIPS 2024; vllm/core/scheduler.py there, _general_schedule and
 * reserve_free_blocks).
 *
 * A prompt asks for all its blocks, a decode for one, needed or not; a watermark stays free
 * besides. If blocks are short,
 *   1. running requests that were not chosen are swapped out, the last ranked first;
 *   2. the last of the chosen requests are left out.
 * Other requests on the device stay there and pause. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

enum { EVERYWHERE = IFL_IN_WAITING | IFL_IN_RUNNING | IFL_IN_SWAPPED };

struct best_that_fit {
    int32_t max_seqs;
    int32_t max_batched_tokens;
    double watermark_frac;
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct best_that_fit, max_seqs), 256, 1, 1 << 20, NULL,
     "sequences", "most sequences of a step"},
    {"max_batched_tokens", IFL_INT, offsetof(struct best_that_fit, max_batched_tokens), 768, 1,
     1 << 30, NULL, "tokens", "token budget of a step; prompts are cut to the rest of the budget"},
    {"watermark_frac", IFL_REAL, offsetof(struct best_that_fit, watermark_frac), 0.01, 0, 1, NULL,
     "", "share of all blocks that a step leaves free; one block per sequence counts as used"},
};

static int32_t watermark(const struct best_that_fit *p, const struct ifl_view *view)
{
    return (int32_t)(p->watermark_frac * view->limits->n_blocks);
}

/* ---- requests in rank order, until tokens or seats are used up ---- */

struct walk {
    struct ifl_cursor cursor;
    int32_t n_tokens, n_seqs;
    size_t n_running; /* requests visited so far that are on the device */
};

/* The next request in rank order, with its tokens of this step in *n_new; NULL if tokens or seats
 * are used up. */
static const struct ifl_request *walk_on(const struct best_that_fit *p, struct ifl_step *step,
                                         struct walk *walk, int32_t *n_new)
{
    const struct ifl_request *r;
    while ((r = ifl_next(step, EVERYWHERE, &walk->cursor)) &&
           (ifl_todo(r) == 0 || ifl_dropped_as_too_wide(step, r, p->max_seqs)))
        walk->n_running += r->state == IFL_RUNNING;
    if (!r)
        return NULL;
    const int32_t left = p->max_batched_tokens - walk->n_tokens, todo = ifl_todo(r);
    const int32_t rows = ifl_decodes(r) ? r->n_seqs : 1;
    *n_new = rows > 1 ? todo : ifl_min(todo, left);
    if (walk->n_seqs + r->n_seqs > p->max_seqs || *n_new <= 0 ||
        (walk->n_tokens > 0 && rows * *n_new > left))
        return NULL;
    walk->n_tokens += rows * *n_new;
    walk->n_seqs += r->n_seqs;
    walk->n_running += r->state == IFL_RUNNING;
    return r;
}

/* ---- the best ---- */

struct choice {
    size_t n, n_running; /* chosen requests; requests on the device up to the last chosen rank */
    int64_t n_asked;     /* blocks that the chosen requests ask for */
    int64_t n_freed;     /* blocks that the chosen requests ask for or hold: leaving all of them
                            out would save as many */
};

/* A prompt that has begun may lack blocks, if the admit module gives them chunk by chunk. */
static int32_t blocks_asked(struct ifl_step *step, const struct ifl_request *r, int32_t n_new)
{
    if (r->state == IFL_WAITING)
        return ifl_need(step, r, ifl_n_tokens(r));
    const int32_t spare = r->n_seqs + (r->state == IFL_SWAPPED ? r->n_host_blocks : 0);
    const int32_t lacks = ifl_decodes(r) ? 0 : ifl_need(step, r, ifl_n_slots(r) + n_new);
    return ifl_max(lacks, spare);
}

/* The best requests, as many as keep n_freed within `most`. */
static struct choice choose(const struct best_that_fit *p, struct ifl_step *step, int64_t most)
{
    struct choice choice = {0};
    struct walk walk = {0};
    const struct ifl_request *r;
    int32_t n_new;
    while ((r = walk_on(p, step, &walk, &n_new))) {
        const int64_t asked = blocks_asked(step, r, n_new);
        const int64_t freed = asked + (r->state == IFL_RUNNING ? ifl_n_blocks(r) : 0);
        if (choice.n_freed + freed > most)
            break;
        choice = (struct choice){choice.n + 1, walk.n_running, choice.n_asked + asked,
                                 choice.n_freed + freed};
    }
    return choice;
}

/* ---- blocks for them ---- */

/* Swaps out running requests with ranks n_kept up to n_here, the last ranked first, until n_lacking
 * blocks are freed. Returns how many blocks are still lacking. */
static int64_t swap_out(const struct ifl_view *view, struct ifl_step *step, size_t n_kept,
                        size_t n_here, int64_t n_lacking)
{
    for (size_t i = view->n_running - n_here; i < view->n_running - n_kept && n_lacking > 0; i++) {
        const struct ifl_request *r = ifl_last_ranked(step, i);
        const int32_t n_blocks = ifl_n_blocks(r);
        if (ifl_todo(r) > 0 && ifl_preempt(step, r, IFL_SWAP, IFL_IN_ORDER) == IFL_YES)
            n_lacking -= n_blocks;
    }
    return n_lacking;
}

/* True if the best request is a prompt that has begun and is alone on the device. It has its blocks
 * and lacks at most the watermark: swapped out for that, it would start over for ever. */
static bool best_is_lone_prompt(const struct best_that_fit *p, const struct ifl_view *view,
                                struct ifl_step *step)
{
    struct walk walk = {0};
    int32_t n_new;
    if (view->n_running != 1 || step->n_in_prefill != 1)
        return false;
    const struct ifl_request *best = walk_on(p, step, &walk, &n_new);
    return best && best->state == IFL_RUNNING;
}

/* Swaps out requests until the blocks suffice; returns the part of the chosen requests that they
 * suffice for. */
static struct choice find_blocks(const struct best_that_fit *p, const struct ifl_view *view,
                                 struct ifl_step *step, struct choice chosen)
{
    int64_t n_lacking = chosen.n_asked + watermark(p, view) - step->n_free_blocks;
    if (n_lacking > 0)
        n_lacking = swap_out(view, step, chosen.n_running, view->n_running, n_lacking);
    if (n_lacking <= 0)
        return chosen;
    const struct choice kept = choose(p, step, chosen.n_freed - n_lacking);
    if (kept.n == 0 && best_is_lone_prompt(p, view, step))
        return (struct choice){.n = 1, .n_running = 1};
    (void)swap_out(view, step, kept.n_running, chosen.n_running, INT64_MAX);
    return kept;
}

/* ---- tokens for them ---- */

/* The blocks found may not suffice: a group that parts needs more, the admit module requires more,
 * or free blocks are not contiguous. A running request then preempts others. Another request does
 * so only while the step is empty, so that at least one request runs. */
static bool give(struct ifl_step *step, const struct ifl_request *r, int32_t n_new)
{
    if (r->state == IFL_RUNNING)
        return ifl_give(step, r, n_new, 0);
    enum ifl_verdict verdict = ifl_start(step, r, n_new);
    while (verdict == IFL_NO_BLOCKS && step->n_requests == 0 && ifl_make_room(step, r))
        verdict = ifl_start(step, r, n_new);
    if (verdict == IFL_NEVER_FITS)
        ifl_reject(step, r);
    return verdict == IFL_YES;
}

/* Skips requests that admission refuses; returns false if it skipped any. */
static bool run(const struct best_that_fit *p, struct ifl_step *step, size_t n)
{
    struct walk walk = {0};
    const struct ifl_request *r;
    int32_t n_new;
    bool all = true;
    for (size_t i = 0; i < n && (r = walk_on(p, step, &walk, &n_new)); i++)
        all &= give(step, r, n_new);
    return all;
}

/* Rejects the best request if it can never have its blocks: it would block the queue for ever. */
static void reject_hopeless(const struct best_that_fit *p, const struct ifl_view *view,
                            struct ifl_step *step)
{
    struct walk walk = {0};
    int32_t n_new;
    const struct ifl_request *r = walk_on(p, step, &walk, &n_new);
    if (!r || r->state == IFL_RUNNING)
        return;
    const int64_t n_blocks = (int64_t)blocks_asked(step, r, n_new) + watermark(p, view);
    if (n_blocks > view->limits->n_blocks)
        ifl_refuse(step, r, "its blocks and those of watermark_frac are more than the pool has");
    if (n_blocks > view->limits->n_blocks || ifl_ask(step, r, n_new) == IFL_NEVER_FITS)
        ifl_reject(step, r);
}

/* ---- when ranks do not matter ---- */

static bool all_fit(const struct best_that_fit *p, const struct ifl_view *view,
                    struct ifl_step *step)
{
    const int32_t n_seqs = step->n_running_seqs;
    const struct ifl_demand most = {p->max_seqs, p->max_batched_tokens, step->n_free_blocks};
    struct ifl_demand demand = {n_seqs, n_seqs, n_seqs + watermark(p, view)};
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    if (view->n_swapped > 0)
        return false;
    while (ifl_within(&demand, &most) && (r = ifl_next(step, IFL_IN_PREFILL, &cursor))) {
        demand.n_tokens += (int64_t)r->n_seqs * ifl_todo(r);
        demand.n_blocks += blocks_asked(step, r, ifl_todo(r)) - r->n_seqs;
    }
    return ifl_add_waiting(step, &demand, &most);
}

/* Returns false if a group that parts needs more blocks than were counted. */
static bool run_all(struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    if (!ifl_schedule_ready(step, 0))
        return false;
    while ((r = ifl_next(step, IFL_IN_PREFILL | IFL_IN_WAITING, &cursor)))
        if (ifl_todo(r) > 0)
            (void)give(step, r, ifl_todo(r));
    return true;
}

/* ---- the plan ---- */

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct best_that_fit *p = self;
    const bool none_else = view->n_waiting + view->n_swapped == 0;
    if (all_fit(p, view, step) && run_all(step)) {
        if (none_else && step->n_prefill_requests == 0)
            ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER,
                                    step->n_running_seqs + watermark(p, view));
        return;
    }
    const struct choice chosen = choose(p, step, INT64_MAX);
    const struct choice kept = find_blocks(p, view, step, chosen);
    const bool all_run = run(p, step, kept.n) && kept.n == chosen.n;
    if (kept.n == 0 && step->n_preempted == 0)
        reject_hopeless(p, view, step);
    /* In the next step each decode asks for one block again, and the number of free blocks only
     * falls. */
    if (all_run && step->n_prefill_requests == 0)
        ifl_promise(step, INT32_MAX, IFL_NEVER, step->n_tokens + watermark(p, view));
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_best_that_fit = {
    .kind = IFL_BATCHING,
    .name = "best-that-fit",
    .doc = "runs the best ranked requests, with blocks found for all together; others pause (LTR)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct best_that_fit),
    .ops.batching = &ops,
};
