/* The batching of a decode replica: it loads the K/V of prompts that other replicas have computed,
 * starts the loaded requests, and gives every running request a token. A request without K/V
 * elsewhere computes its prompt here.
 *
 * DistServe (82831f1, decoding_stage_scheduler.py): loads come before a step, which waits for them,
 * also for those of prompts that end during the loads. They go on while loaded requests that have
 * not started hold less than a share of all blocks (waiting_block_prop_threshold). Requests in host
 * memory come back before others start, the first that was preempted first, perhaps in the plan
 * that preempts (swapped_queue). A loaded request starts only if free blocks would do for all its
 * tokens: _check_add_to_cur_batch counts it among those that wait and once more.
 *
 * SGLang (0.5.23, disaggregation/decode.py): loads go on beside steps. A request is loaded if
 *
 *     max(prompt + R, prompt - hit + min(max_new, C) - retractable) <= budget
 *
 * in tokens. R is reserved_tokens (num_reserved_decode_tokens), C declared_tokens, and
 * `retractable` the tokens that running requests hold. A plan begins with
 *
 *     budget = free - max(R x (running, moving and loaded requests), longest - retractable)
 *
 * where `longest` is the largest prompt + min(max_new, C) of a running request. Each load takes
 * prompt - hit + R from the budget. No request is loaded while one is in host memory. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct loading {
    int32_t max_seqs;
    int32_t max_batched_tokens;
    bool before_step;
    double loaded_frac;
    int32_t reserved_tokens;
    int32_t declared_tokens;
    int32_t returns;
    bool counts_again;
};

enum returns { RETURNS_RANKED, RETURNS_PREEMPTED };

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct loading, max_seqs), 1024, 1, 1 << 20, NULL, "sequences",
     "most sequences on the device"},
    {"max_batched_tokens", IFL_INT, offsetof(struct loading, max_batched_tokens), 65536, 1, 1 << 30,
     NULL, "tokens", "most tokens of a step"},
    {"before_step", IFL_BOOL, offsetof(struct loading, before_step), 0, 0, 1, NULL, "",
     "the next step waits for loads (DistServe)"},
    {"loaded_frac", IFL_REAL, offsetof(struct loading, loaded_frac), 1, 0, 1, NULL, "of the blocks",
     "loads stop while requests that are loaded but not started hold this fraction"},
    {"reserved_tokens", IFL_INT, offsetof(struct loading, reserved_tokens), 0, 0, 1 << 20, NULL,
     "tokens", "tokens kept free per request when another is loaded (SGLang); 0: none"},
    {"declared_tokens", IFL_INT, offsetof(struct loading, declared_tokens), 4096, 0, 1 << 30, NULL,
     "tokens", "with reserved_tokens: limit of the declared output that counts"},
    {"returns", IFL_CHOICE, offsetof(struct loading, returns), RETURNS_RANKED, 0, 0,
     "ranked|preempted", "",
     "requests in host memory come back by rank, in a plan that preempts none; or in the order in "
     "which they were preempted, also in such a plan (DistServe)"},
    {"counts_again", IFL_BOOL, offsetof(struct loading, counts_again), 0, 0, 1, NULL, "",
     "a loaded request starts only if as many blocks are free as it has tokens for: those that it "
     "holds count twice (DistServe)"},
};

/* ---- what may be loaded ---- */

/* Tokens that a plan may still load, and those that running requests hold. */
struct reserve {
    int64_t budget, n_retractable;
};

static struct reserve reserve_of(const struct loading *p, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    int64_t n_held = 0, longest = 0;
    for (size_t i = 0; p->reserved_tokens > 0 && i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        n_held += ifl_n_computed(r);
        longest =
            ifl_max(longest, (int64_t)r->n_prompt + ifl_min(r->n_max_new, p->declared_tokens));
    }
    const int64_t n_taken = (int64_t)step->n_running_requests + view->n_moving + step->n_loaded;
    const int64_t kept = ifl_max(p->reserved_tokens * n_taken, longest - n_held);
    return (struct reserve){(int64_t)step->n_free_blocks * view->limits->block_tokens - kept,
                            n_held};
}

static bool may_load(const struct loading *p, struct ifl_step *step, const struct ifl_request *r,
                     int32_t n_cached, struct reserve *reserve)
{
    if (p->reserved_tokens == 0)
        return true;
    const int64_t soon = (int64_t)r->n_prompt + p->reserved_tokens,
                  in_all = r->n_prompt - n_cached + ifl_min(r->n_max_new, p->declared_tokens) -
                           reserve->n_retractable;
    if (step->n_swapped > 0 || ifl_max(soon, in_all) > reserve->budget) {
        ifl_refuse(step, r, "it keeps a reserve free for those that run");
        return false;
    }
    reserve->budget -= soon - n_cached;
    return true;
}

static int32_t blocks_for(const struct ifl_view *view, int32_t n_tokens)
{
    return (n_tokens + view->limits->block_tokens - 1) / view->limits->block_tokens;
}

static int32_t blocks_of(const struct ifl_view *view, const struct ifl_request *r)
{
    return blocks_for(view, r->n_prompt);
}

/* Loads requests in order until one may not be loaded, and returns how many were. A request without
 * K/V elsewhere starts here. */
static int32_t load_waiting(const struct loading *p, const struct ifl_view *view,
                            struct ifl_step *step, bool *refused)
{
    const enum ifl_load_way way = p->before_step ? IFL_LOAD_BEFORE : IFL_LOAD_APART;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    if (step->n_waiting == step->n_loaded)
        return 0;
    struct reserve reserve = reserve_of(p, view, step);
    int32_t n = 0, n_blocks = 0; /* loaded requests; blocks of their prompts, without those of
                                    their first tokens */
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        if (r->state == IFL_LOADED)
            n_blocks += blocks_of(view, r);
        if (r->state == IFL_LOADED || ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        const struct ifl_hit hit = ifl_hit(step, r);
        if (hit.n_below == 0) {
            if (step->n_running_seqs + r->n_seqs > p->max_seqs ||
                !ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
                break;
            continue;
        }
        if (n_blocks >= p->loaded_frac * view->limits->n_blocks && n_blocks > 0)
            break;
        if (!may_load(p, step, r, hit.n_cached, &reserve) ||
            ifl_load(step, r, hit.n_below, way) != IFL_YES)
            break;
        n_blocks += blocks_of(view, r);
        n++;
    }
    *refused = r != NULL;
    return n;
}

/* ---- the plan ---- */

/* True if all running requests have a token and none was preempted for it. */
static bool decode(struct ifl_step *step)
{
    if (ifl_schedule_ready(step, 0))
        return true;
    ifl_decode_one_by_one(step, 0);
    return false;
}

/* The request in host memory that was preempted first, or NULL. */
static const struct ifl_request *first_preempted(const struct loading *p, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r, *first = NULL;
    while ((r = ifl_next(step, IFL_IN_SWAPPED, &cursor))) {
        const uint64_t *place = ifl_mine(p, r);
        if (!first || *place < *(const uint64_t *)ifl_mine(p, first))
            first = r;
    }
    return first;
}

static void return_swapped(const struct loading *p, struct ifl_step *step)
{
    const struct ifl_request *r;
    if (p->returns == RETURNS_RANKED) {
        if (step->n_preempted == 0)
            ifl_return_swapped(step, p->max_seqs);
        return;
    }
    while (step->n_swapped > 0 && step->n_running_seqs < p->max_seqs &&
           (r = first_preempted(p, step))) {
        const enum ifl_verdict verdict = ifl_start(step, r, 1);
        if (verdict == IFL_NEVER_FITS)
            ifl_reject(step, r);
        else if (verdict != IFL_YES)
            return;
    }
}

static bool may_begin(const struct loading *p, const struct ifl_view *view, struct ifl_step *step,
                      const struct ifl_request *r)
{
    if (step->n_running_seqs + r->n_seqs > p->max_seqs)
        return false;
    if (!p->counts_again || blocks_for(view, ifl_n_tokens(r)) <= step->n_free_blocks)
        return true;
    ifl_refuse(step, r, "it counts the blocks of a loaded request twice");
    return false;
}

static void start_loaded(const struct loading *p, const struct ifl_view *view,
                         struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_tokens < p->max_batched_tokens && (r = ifl_next(step, IFL_IN_LOADED, &cursor)))
        if (!may_begin(p, view, step, r) || !ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            return;
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct loading *p = self;
    bool refused = false;
    if (p->before_step && load_waiting(p, view, step, &refused) > 0)
        return;
    const bool ready = decode(step);
    return_swapped(p, step);
    if (step->n_swapped == 0 && step->n_preempted == 0)
        start_loaded(p, view, step);
    if (!p->before_step && step->n_preempted == 0)
        load_waiting(p, view, step, &refused);
    const bool asks_next_time = p->before_step && step->n_waiting > 0;
    if (ready && step->n_swapped_in == 0 && !refused && !asks_next_time)
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

/* Its place among those in host memory: by plan, and in a plan by order. */
static void on_preempt(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    uint64_t *place = ifl_mine(self, r);
    const struct ifl_step *step = ifl_plan(view);
    *place = ifl_next_step(view) << 24 | (step ? (uint32_t)step->n_preempted : 0);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_loading = {
    .kind = IFL_BATCHING,
    .name = "loading",
    .doc = "decode replica: loads K/V that other replicas have computed, and decodes",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct loading),
    .request_bytes = sizeof(uint64_t),
    .on_preempt = on_preempt,
    .steady = ifl_always_steady,
    .ops.batching = &ops,
};
