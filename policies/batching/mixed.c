/* Mixed continuous batching: decodes and prompts share a step.
 *
 * Without a budget whole prompts join the decodes, as in Orca (Yu et al., OSDI 2022, section 3.1,
 * selective batching). With a token budget prompts are cut into chunks that fill what the decodes
 * leave, as in Sarathi-Serve (Agrawal et al., OSDI 2024, Algorithm 3): decodes first, then prompts
 * that have begun, then new ones. A prompt never delays a decode. vLLM v0 with chunked prefill
 * (vllm/core/scheduler.py, _schedule_chunked_prefill) does the same. The vLLM of the paper (tag
 * submission, Kwon et al., SOSP 2023) adds whole prompts within its budget. The systems differ in
 * which requests may start in a step that has preempted another (after_preemption).
 *
 * vLLM v0.7.3 to v0.10 with max_num_partial_prefills above 1 (core/scheduler.py,
 * PartialPrefillMetadata): the budget of a step is divided by the prompts that have begun or wait,
 * but at most by that number, and each prompt gets such a part at most. A long waiting prompt is
 * passed over while max_long_partial_prefills long prompts have begun. */
#include <math.h>

#include "inflight/minmax.h"
#include "inflight/policy.h"

#include "split.h"

enum walk { WALK_STARTED, WALK_RANKED };
enum prompts { PROMPTS_CHUNKED, PROMPTS_WHOLE };
enum after_preemption { AFTER_EVERYONE, AFTER_OTHERS, AFTER_UNTIL_VICTIM };

struct mixed {
    int32_t max_seqs;
    bool split_seqs;
    int32_t chunk_tokens; /* 0: no limit */
    int32_t append_spare_blocks;
    int32_t walk;
    int32_t prompts;
    int32_t after_preemption;
    bool swapped_first;
    int32_t schedule_stages; /* 0: chunk_tokens at every stage */
    int32_t schedule_tokens, low_chunk_tokens, high_chunk_tokens;
    int32_t max_partial_prefills, max_long_partial_prefills, long_prefill_tokens;
};

/* Limits of a plan with several prompts at a time. */
struct partials {
    int32_t slot_tokens; /* most that a prompt gets */
    int32_t n_long;      /* long prompts that have begun */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct mixed, max_seqs), 128, 1, 1 << 20, NULL, "sequences",
     "most sequences on the device"},
    {"split_seqs", IFL_BOOL, offsetof(struct mixed, split_seqs), 0, 0, 1, NULL, "",
     "in a pipeline a step has at most max_seqs / steps in flight (Vidur); false: no such limit"},
    {"chunk_tokens", IFL_INT, offsetof(struct mixed, chunk_tokens), 0, 0, 1 << 30, NULL, "tokens",
     "token budget of a step, decodes included; 0: no budget, prompts run whole"},
    {"append_spare_blocks", IFL_INT, offsetof(struct mixed, append_spare_blocks), 0, 0, 1, NULL,
     "blocks",
     "1: a decode must find a free block per sequence even if it needs none (Sarathi-Serve)"},
    {"walk", IFL_CHOICE, offsetof(struct mixed, walk), WALK_STARTED, 0, 0, "started|ranked", "",
     "order in which decodes are served: by start or by rank"},
    {"prompts", IFL_CHOICE, offsetof(struct mixed, prompts), PROMPTS_CHUNKED, 0, 0, "chunked|whole",
     "", "a prompt larger than the rest of the budget gets this rest, or waits"},
    {"after_preemption", IFL_CHOICE, offsetof(struct mixed, after_preemption), AFTER_EVERYONE, 0, 0,
     "everyone|others|until-victim", "",
     "requests that may start in a step that preempts: all (Sarathi-Serve); all but its victims "
     "(vLLM v0); those before the first victim, and swapped ones unless one was swapped out "
     "(paper)"},
    {"swapped_first", IFL_BOOL, offsetof(struct mixed, swapped_first), 1, 0, 1, NULL, "",
     "no waiting request starts while another is swapped out"},
    {"schedule_stages", IFL_INT, offsetof(struct mixed, schedule_stages), 0, 0, 1 << 20, NULL, "",
     "stages of a prompt in which the budget falls from high_chunk_tokens to low_chunk_tokens "
     "(Sarathi-Serve, enable_dynamic_chunking_schedule); 0: always chunk_tokens"},
    {"schedule_tokens", IFL_INT, offsetof(struct mixed, schedule_tokens), 8192, 1, 1 << 30, NULL,
     "tokens", "prompt tokens that the stages divide; tokens after them are in the last stage"},
    {"low_chunk_tokens", IFL_INT, offsetof(struct mixed, low_chunk_tokens), 256, 1, 1 << 30, NULL,
     "tokens", "budget of the last stage"},
    {"high_chunk_tokens", IFL_INT, offsetof(struct mixed, high_chunk_tokens), 1024, 1, 1 << 30,
     NULL, "tokens", "budget of the first stage"},
    {"max_partial_prefills", IFL_INT, offsetof(struct mixed, max_partial_prefills), 1, 1, 1 << 20,
     NULL, "prompts",
     "prompts that share the budget evenly (vLLM v0's max_num_partial_prefills); 1: the first one "
     "takes all it can use"},
    {"max_long_partial_prefills", IFL_INT, offsetof(struct mixed, max_long_partial_prefills), 1, 1,
     1 << 20, NULL, "prompts", "most long prompts among them, if max_partial_prefills is above 1"},
    {"long_prefill_tokens", IFL_INT, offsetof(struct mixed, long_prefill_tokens), 0, 0, 1 << 30,
     NULL, "tokens",
     "a prompt with more tokens left is long (long_prefill_token_threshold); 0: 4% of "
     "max_model_len"},
};

static bool is_long(const struct mixed *p, const struct ifl_view *view, const struct ifl_request *r)
{
    const int32_t n_left = r->state == IFL_WAITING ? ifl_n_tokens(r) : ifl_todo(r);
    const int32_t longest = view->limits->max_model_tokens;
    return n_left > (p->long_prefill_tokens ? p->long_prefill_tokens
                                            : (int32_t)((int64_t)longest * 4 / 100));
}

/* Divides the budget among the prompts that have begun and the waiting ones, in order, until there
 * are enough; of long waiting prompts only as many count as may start. */
static struct partials share_budget(const struct mixed *p, const struct ifl_view *view,
                                    struct ifl_step *step)
{
    struct partials partials = {.slot_tokens = INT32_MAX};
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    int32_t n = 0, n_long_waiting = 0;
    if (p->max_partial_prefills == 1 || p->chunk_tokens == 0)
        return partials;
    while ((r = ifl_next(step, IFL_IN_PREFILL, &cursor))) {
        n++;
        partials.n_long += is_long(p, view, r);
    }
    cursor = (struct ifl_cursor){{0}};
    while (n < p->max_partial_prefills && (r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        const bool waits_long = is_long(p, view, r);
        if (waits_long && partials.n_long + n_long_waiting >= p->max_long_partial_prefills)
            continue;
        n_long_waiting += waits_long;
        n++;
    }
    const int32_t n_slots = ifl_max(ifl_min(n, p->max_partial_prefills), 1);
    partials.slot_tokens = ifl_max(p->chunk_tokens / n_slots, 1);
    return partials;
}

/* True for a long prompt that must wait because enough long prompts have begun; requests behind it
 * need not wait. */
static bool passes_over(const struct mixed *p, const struct ifl_view *view,
                        const struct partials *partials, const struct ifl_request *r)
{
    return p->max_partial_prefills > 1 && r->state == IFL_WAITING && is_long(p, view, r) &&
           partials->n_long >= p->max_long_partial_prefills;
}

static int32_t schedule_unit(const struct mixed *p)
{
    return ifl_min(p->low_chunk_tokens, 32);
}

static int32_t rounded(int32_t size, int32_t unit)
{
    return (int32_t)lrint((double)size / unit) * unit;
}

/* Sarathi-Serve, sarathi_scheduler.py, _compute_chunk_size_schedule: equal steps from high to low,
 * rounded to multiples of 32 or of low, whichever is less. A waiting request is in the first stage.
 */
static int32_t scheduled_budget(const struct mixed *p, const struct ifl_request *r)
{
    const int32_t last = p->schedule_stages - 1;
    const int32_t per_stage = (p->schedule_tokens + last) / p->schedule_stages;
    const int32_t stage = r->state == IFL_WAITING ? 0 : ifl_n_computed(r) / per_stage;
    const int32_t to_go = stage < last ? last - stage : 0;
    const int64_t range = p->high_chunk_tokens - p->low_chunk_tokens;
    const int32_t size = p->low_chunk_tokens + (int32_t)(to_go ? range * to_go / last : 0);
    return rounded(size, schedule_unit(p));
}

static int32_t budget_left(const struct mixed *p, const struct ifl_step *step,
                           const struct ifl_request *r)
{
    if (p->schedule_stages)
        return scheduled_budget(p, r) - step->n_tokens;
    return p->chunk_tokens ? p->chunk_tokens - step->n_tokens : INT32_MAX;
}

/* Running requests one after the other, in the order that the parameter asks for. */
struct walker {
    struct ifl_step *step;
    struct ifl_requests running;
    size_t i;
    struct ifl_cursor cursor;
    bool ranked;
};

static struct walker walk_running(const struct mixed *p, struct ifl_step *step)
{
    if (p->walk == WALK_RANKED)
        return (struct walker){.step = step, .ranked = true};
    return (struct walker){.step = step, .running = ifl_running(step)};
}

static const struct ifl_request *walk_next(struct walker *w)
{
    if (w->ranked)
        return ifl_next(w->step, IFL_IN_RUNNING, &w->cursor);
    return w->i < w->running.n ? w->running.of[w->i++] : NULL;
}

static void decode_one_by_one(const struct mixed *p, struct ifl_step *step, int32_t most)
{
    struct walker walker = walk_running(p, step);
    const struct ifl_request *r;
    while (step->n_requests < most && (r = walk_next(&walker)))
        if (ifl_decodes(r))
            ifl_give(step, r, 1 + ifl_drafts(step, r), p->append_spare_blocks * r->n_seqs);
}

static int32_t share_of(const struct mixed *p, const struct partials *partials,
                        const struct ifl_step *step, const struct ifl_request *r)
{
    const int32_t todo = ifl_todo(r), left = budget_left(p, step, r);
    const int32_t most = ifl_min(left, partials->slot_tokens);
    return ifl_min(todo, most);
}

/* Prompts that have begun stay on the device, also if the budget leaves them no tokens. */
static void continue_prompts(const struct mixed *p, const struct partials *partials,
                             struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_PREFILL, &cursor)))
        ifl_give(step, r, share_of(p, partials, step, r), 0);
}

/* A whole prompt that exceeds any budget is dropped, as vLLM ignores it. */
static inline enum ifl_verdict start_one(const struct mixed *p, const struct partials *partials,
                                         struct ifl_step *step, const struct ifl_request *r)
{
    const int32_t todo = ifl_todo(r), left = budget_left(p, step, r);
    const bool whole = p->prompts == PROMPTS_WHOLE && r->state == IFL_WAITING;
    if (whole && ifl_n_tokens(r) - step->n_tokens > left)
        return ifl_never(step, r, "the prompt is longer than chunk_tokens");
    if (left <= 0 || (whole && todo > left) || step->n_running_seqs + r->n_seqs > p->max_seqs)
        return IFL_WAIT;
    return ifl_start(step, r, share_of(p, partials, step, r));
}

/* Requests of a list start, in rank order, until one must wait or the step is full. */
IFL_HOT static void start_from(const struct mixed *p, const struct ifl_view *view,
                               struct partials *partials, struct ifl_step *step, enum ifl_list list)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    const int32_t most = most_in_step(view, p->split_seqs, p->max_seqs);
    while (step->n_running_seqs < p->max_seqs && step->n_requests < most &&
           (r = ifl_next(step, list, &cursor))) {
        if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        if (p->after_preemption != AFTER_EVERYONE && ifl_gave_way_now(view, step, r)) {
            if (p->after_preemption == AFTER_OTHERS)
                continue;
            return;
        }
        const bool counts_long = p->max_partial_prefills > 1 && is_long(p, view, r);
        if (passes_over(p, view, partials, r))
            continue;
        const enum ifl_verdict verdict = start_one(p, partials, step, r);
        if (!ifl_settled(step, r, verdict))
            return;
        partials->n_long += verdict == IFL_YES && counts_long;
    }
}

static bool may_swap_in(const struct mixed *p, const struct ifl_step *step)
{
    return p->after_preemption == AFTER_UNTIL_VICTIM ? step->n_swapped_out == 0
                                                     : step->n_preempted == 0;
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct mixed *p = self;
    const int32_t spare_blocks = p->append_spare_blocks * ifl_widest_group(step);
    struct partials partials = share_budget(p, view, step);
    const int32_t most = most_in_step(view, p->split_seqs, p->max_seqs);
    const bool fast = view->n_running <= (size_t)most && ifl_schedule_ready(step, spare_blocks);
    if (!fast)
        decode_one_by_one(p, step, most);
    if ((size_t)step->n_requests < view->n_running)
        continue_prompts(p, &partials, step);
    if (may_swap_in(p, step))
        start_from(p, view, &partials, step, IFL_IN_SWAPPED);
    if (step->n_swapped == 0 || !p->swapped_first)
        start_from(p, view, &partials, step, IFL_IN_WAITING);
    if (fast && step->n_prefill_tokens == 0 && step->n_swapped_in == 0 && step->n_preempted == 0)
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, spare_blocks);
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct mixed *p = self;
    const int32_t unit = schedule_unit(p);
    (void)limits;
    if (p->schedule_stages == 0 || rounded(p->high_chunk_tokens, unit) > 0)
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "serving.batching.high_chunk_tokens is %d, which is rounded to a multiple of "
                    "%d, expected at least %d",
                    p->high_chunk_tokens, unit, unit / 2 + 1);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_mixed = {
    .kind = IFL_BATCHING,
    .name = "mixed",
    .doc = "decodes and prompts share a step; with a budget, prompts run in chunks (Orca, "
           "Sarathi-Serve)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct mixed),
    .init = init,
    .ops.batching = &ops,
};
