/* Prefill first with one chunked prompt at a time, and retraction before a decode, as SGLang
 * schedules (2026-08, python/sglang/srt/managers/scheduler.py and schedule_policy.py).
 *
 * Prefill: a step first continues the prompt that has begun, with as many tokens as the chunk and
 * the free memory allow. Then it starts prompts in rank order until the input budget or the chunk
 * is used up. A prompt that does not fit into the chunk is cut to whole pages. Without chunks, the
 * first prompt of a step may exceed the input budget, and further ones must stay below it.
 *
 * Decode: if there is nothing to prefill, every request decodes a token. Before that, requests are
 * retracted until there is room for all. With `mixed`, decodes join the prefill.
 *
 * The mark (batch_is_full): once the admit module has refused a request, it is not asked again
 * before a request has finished or was retracted. The mark belongs to the decode batch. It is lost
 *   - when a prefill finds the decode batch empty, or takes it along;
 *   - while a prompt is in chunks.
 *
 * A request that ends with a decode keeps its seat, and the batch its mark, until the next decode
 * is made (update_running_batch). So waiting requests start a step later, unless no request is left
 * to decode.
 *
 * With overlap (event_loop_overlap, serving.in_flight.ahead) a step is planned when the step before
 * it begins. The plan does not know of requests that arrive or end during that step.
 *   - Arrivals wait for the next plan.
 *   - Ended requests keep their memory and, in a decode, compute one more token as padding. They
 *     keep their seats until the next decode with a plan that knows of their end.
 * If there is nothing to plan, the plan waits for the end of the step and then knows all. */
#include <math.h>

#include "inflight/minmax.h"
#include "inflight/policy.h"

#include "overrun.h"

struct retracting {
    int32_t max_seqs;
    int32_t max_prefill_tokens;
    int32_t chunk_tokens; /* 0: prompts run whole */
    bool mixed;
};

struct batch {
    bool full;              /* the mark */
    bool decodes;           /* the last step had decodes only */
    int32_t n_ended_seqs;   /* sequences that have ended and keep their seats */
    uint64_t ended_step;    /* these sequences keep their seats until this step, if it decodes */
    int64_t left_ns;        /* when the last request left */
    int64_t start_ns;       /* of the current step */
    struct overrun overrun; /* with overlap: requests that have ended with the current step */
};

/* Bits that a plan leaves for the hooks in step->note. */
enum {
    REFUSED = 1,  /* the last request that the admit module was asked about found no blocks */
    LEARNED = 2,  /* there was nothing to plan: the plan waited for the end of the step */
    FILLED = 4,   /* a request was refused before the plan waited */
    EMPTIED = 8,  /* no request is left for the next decode */
    UNMARKED = 16 /* the mark is lost */
};

/* The facts that a plan may use. */
struct known {
    uint64_t notes;
    int32_t n_ended_seqs;   /* sequences that keep their seats and are known to have ended */
    int64_t until_ns;       /* arrivals after this are unknown */
    bool hides;             /* such an arrival was skipped */
    struct overrun unknown; /* requests that have ended, unknown to the plan */
    int32_t unknown_blocks; /* blocks that these have given back */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct retracting, max_seqs), 4096, 1, 1 << 20, NULL,
     "sequences", "most sequences on the device (max_running_requests)"},
    {"max_prefill_tokens", IFL_INT, offsetof(struct retracting, max_prefill_tokens), 16384, 1,
     1 << 30, NULL, "tokens", "input tokens of a prefill step"},
    {"chunk_tokens", IFL_INT, offsetof(struct retracting, chunk_tokens), 8192, 0, 1 << 30, NULL,
     "tokens",
     "most tokens of a prefill step; longer prompts are cut (chunked_prefill_size); 0: no limit"},
    {"mixed", IFL_BOOL, offsetof(struct retracting, mixed), 0, 0, 1, NULL, "",
     "decodes join a prefill step and count in its chunk (enable_mixed_chunk)"},
};

static struct batch *batch_of(const void *self)
{
    return ifl_state(self);
}

/* ---- events that a plan has seen ---- */

/* True if ended requests are still in the batch. An idle engine keeps making decodes, which clears
 * them. */
static bool counts_ended(const struct retracting *p, const struct ifl_view *view)
{
    const struct batch *batch = batch_of(p);
    const bool idle = view->n_running == 0 && view->now_ns > batch->left_ns;
    return (view->limits->plans_ahead || batch->ended_step == view->step) && !idle;
}

static struct known known_by(const struct retracting *p, const struct ifl_view *view,
                             uint64_t notes)
{
    const struct batch *batch = batch_of(p);
    const bool all = !view->limits->plans_ahead || notes & LEARNED;
    const int32_t n_ended_seqs = batch->n_ended_seqs + (all ? batch->overrun.n_seqs : 0);
    const bool counts = counts_ended(p, view) && !(notes & EMPTIED);
    return (struct known){
        .notes = notes,
        .n_ended_seqs = counts ? n_ended_seqs : 0,
        .until_ns = all ? IFL_NEVER : batch->start_ns,
        .unknown = all ? (struct overrun){0} : batch->overrun,
        .unknown_blocks = all ? 0 : view->n_ended_blocks,
    };
}

static bool is_all(const struct known *known)
{
    return known->unknown.n_seqs == 0 && !known->hides;
}

static int32_t seats_kept(const struct known *known)
{
    return known->n_ended_seqs + known->unknown.n_seqs;
}

static bool is_full(const struct retracting *p, const struct ifl_view *view,
                    const struct known *known)
{
    const bool marked = batch_of(p)->full || known->notes & FILLED;
    return marked && (view->n_running > 0 || seats_kept(known) > 0);
}

/* ---- budgets ---- */

/* Prompt tokens count in whole pages (PrefillAdder, ceil_paged_tokens); a decode that joins counts
 * as one token. */
struct budget { /* of the step, what is left of it */
    int32_t page_tokens;
    int32_t unknown_blocks; /* free blocks that the plan does not know to be free */
    int32_t input_tokens;
    int32_t chunk_tokens;
};

static int32_t n_mixed(const struct retracting *p, const struct ifl_view *view,
                       const struct ifl_step *step, const struct known *known)
{
    const int32_t n_decodes = (int32_t)view->n_running - step->n_in_prefill;
    return p->mixed ? n_decodes + known->n_ended_seqs : 0;
}

static struct budget budget_of(const struct retracting *p, const struct ifl_view *view,
                               const struct ifl_step *step, const struct known *known)
{
    const int32_t n = n_mixed(p, view, step, known);
    return (struct budget){
        .page_tokens = view->limits->block_tokens,
        .unknown_blocks = known->unknown_blocks,
        .input_tokens = p->max_prefill_tokens - n,
        .chunk_tokens = p->chunk_tokens ? p->chunk_tokens - n : INT32_MAX,
    };
}

static int32_t whole_pages(const struct budget *left, int32_t n_tokens)
{
    return (n_tokens + left->page_tokens - 1) / left->page_tokens * left->page_tokens;
}

static void charge(struct budget *left, const struct ifl_request *r)
{
    left->input_tokens -= whole_pages(left, ifl_n_now(r));
    left->chunk_tokens -= left->chunk_tokens == INT32_MAX ? 0 : whole_pages(left, ifl_n_now(r));
}

/* Tokens of r in this step: all that are missing, or the rest of the chunk in whole pages. */
static int32_t share_of(const struct budget *left, const struct ifl_request *r)
{
    const int32_t chunk = left->chunk_tokens, page = left->page_tokens;
    if (whole_pages(left, ifl_todo(r)) <= chunk)
        return ifl_todo(r);
    return chunk >= page ? chunk / page * page : 0;
}

static bool over_input(const struct budget *left, const struct ifl_step *step,
                       const struct ifl_request *r)
{
    return left->chunk_tokens == INT32_MAX && step->n_prefill_requests > 0 &&
           whole_pages(left, ifl_todo(r)) >= left->input_tokens;
}

static double room_of(struct ifl_step *step, const struct budget *left, double enough)
{
    const double unknown = (double)left->unknown_blocks * left->page_tokens;
    return ifl_room(step, enough + unknown) - unknown;
}

/* ---- prefill ---- */

/* Tokens of a prompt that has begun: as many as memory and the chunk allow. Without room for any it
 * continues with a full chunk, because it would hold its memory for ever (add_chunked_req). */
static int32_t tokens_to_go_on(struct ifl_step *step, const struct budget *left,
                               const struct ifl_request *r)
{
    const double room = trunc(room_of(step, left, left->chunk_tokens));
    const int32_t chunk =
        room > 0 && room < left->chunk_tokens ? (int32_t)room : left->chunk_tokens;
    return ifl_min(ifl_todo(r), chunk);
}

/* A prompt that has begun is not cut to whole pages. */
static void continue_chunk(struct ifl_step *step, struct budget *left)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_PREFILL, &cursor)))
        if (ifl_give(step, r, tokens_to_go_on(step, left, r), 0))
            charge(left, r);
}

/* Memory is checked before the budgets, so that a request that lacks both sets the mark. Within the
 * budgets the start itself asks the same question. */
static enum ifl_verdict start_one(struct ifl_step *step, const struct budget *left,
                                  const struct ifl_request *r)
{
    const int32_t n = share_of(left, r);
    const bool within = n > 0 && !over_input(left, step, r);
    if (within && left->unknown_blocks == 0)
        return ifl_start(step, r, n);
    const enum ifl_verdict memory = ifl_ask_beyond(step, r, n, left->unknown_blocks);
    if (memory != IFL_YES)
        return memory;
    return within ? ifl_start(step, r, n) : IFL_WAIT;
}

/* True if the plan examines no request after `last`: that prompt was cut, or a budget is used up.
 */
static bool used_up(const struct budget *left, const struct ifl_request *last)
{
    return ifl_todo(last) > 0 || left->input_tokens <= 0 || left->chunk_tokens <= 0;
}

static void note_refusal(struct known *known, bool refused)
{
    known->notes = refused ? known->notes | REFUSED : known->notes & ~(uint64_t)REFUSED;
}

static void start_prompts(const struct retracting *p, struct ifl_step *step, struct budget *left,
                          struct known *known)
{
    const int32_t n_seats_kept = seats_kept(known);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_running_seqs + n_seats_kept < p->max_seqs &&
           (r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        if (r->arrival_ns > known->until_ns) {
            known->hides = true;
            continue;
        }
        if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        const enum ifl_verdict verdict = start_one(step, left, r);
        note_refusal(known, verdict == IFL_NO_BLOCKS);
        if (!ifl_settled(step, r, verdict))
            return;
        if (verdict != IFL_YES)
            continue;
        charge(left, r);
        const bool last = room_of(step, left, 1) <= 0;
        note_refusal(known, last);
        if (last || used_up(left, r))
            return;
    }
}

static void prefill(const struct retracting *p, const struct ifl_view *view, struct ifl_step *step,
                    struct known *known)
{
    struct budget left = budget_of(p, view, step, known);
    continue_chunk(step, &left);
    if (!is_full(p, view, known) && view->n_swapped == 0 && step->n_preempted == 0)
        start_prompts(p, step, &left, known);
}

/* ---- decode ---- */

static const struct ifl_request *any_running(struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING && ifl_n_now(running.of[i]) == 0)
            return running.of[i];
    return NULL;
}

/* Gives each running request a token. Preempts until all have blocks, or until there is no further
 * victim. */
static void decode_all(struct ifl_step *step, int32_t spare_blocks)
{
    while (!ifl_schedule_ready(step, spare_blocks)) {
        const int32_t n_before = step->n_preempted;
        const struct ifl_request *r = any_running(step);
        if (r)
            ifl_make_room(step, r);
        if (step->n_preempted == n_before)
            return;
    }
}

/* ---- is the batch full? ---- */

/* After a prefill, true if a prompt is still in chunks or there is no decode batch beside the
 * prompts. */
static bool loses_mark(const struct retracting *p, struct ifl_step *step, const struct known *known)
{
    const struct ifl_requests started = ifl_started(step);
    int32_t n_prompts = (int32_t)started.n;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    for (; (r = ifl_next(step, IFL_IN_PREFILL, &cursor)); n_prompts++)
        if (ifl_todo(r) > 0)
            return true;
    for (size_t i = 0; i < started.n; i++)
        if (ifl_todo(started.of[i]) > 0)
            return true;
    return p->mixed || (step->n_running_requests == n_prompts && seats_kept(known) == 0);
}

/* Blocks of requests that have ended, unknown to the plan, count as taken. If then no request can
 * decode, the last request left may use these blocks. */
static void decode(struct ifl_step *step, const struct known *known)
{
    const struct overrun *unknown = &known->unknown;
    decode_all(step, known->unknown_blocks + unknown->n_new_blocks);
    if (unknown->n_seqs == 0)
        return;
    if (step->n_requests == 0)
        decode_all(step, 0);
    if (step->n_requests > 0)
        overrun_pad(step, unknown);
}

/* ---- the plan ---- */

static bool has_nothing(const struct ifl_view *view, const struct ifl_step *step)
{
    return step->n_requests == 0 && view->n_running == 0;
}

static struct known prefill_some(const struct retracting *p, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    struct known known = known_by(p, view, 0);
    prefill(p, view, step, &known);
    if (has_nothing(view, step) && !is_all(&known)) {
        const uint64_t filled = known.notes & REFUSED ? FILLED : 0;
        known = known_by(p, view, known.notes | LEARNED | filled);
        prefill(p, view, step, &known);
    }
    if (has_nothing(view, step) && known.n_ended_seqs > 0) {
        known = known_by(p, view, known.notes | EMPTIED);
        prefill(p, view, step, &known);
    }
    return known;
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct retracting *p = self;
    const struct known known = prefill_some(p, view, step);
    const bool unmarked = step->n_prefill_requests > 0 && loses_mark(p, step, &known);
    step->note = known.notes | (unmarked ? UNMARKED : 0);
    if (step->n_prefill_requests > 0 && !p->mixed)
        return;
    decode(step, &known);
    if (step->n_preempted > 0)
        return;
    if (view->n_swapped > 0)
        ifl_return_swapped(step, p->max_seqs);
    if (!is_all(&known) || (step->n_waiting > 0 && known.n_ended_seqs > 0))
        return;
    if (view->limits->plans_ahead)
        ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
    else
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

/* ---- what follows from it ---- */

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct batch *batch = batch_of(self);
    const struct retracting *p = self;
    const struct known known = known_by(p, view, step->note);
    const bool counted = known.n_ended_seqs > 0;
    const bool decodes = p->mixed || step->n_prefill_tokens == 0;
    const bool marked = is_full(p, view, &known) || step->note & REFUSED;
    const bool unmarked = step->n_preempted > 0 || step->note & UNMARKED;
    batch->full = marked && !unmarked && !(counted && decodes);
    batch->decodes = step->n_prefill_tokens == 0;
    batch->ended_step += counted && !decodes;
    if (view->limits->plans_ahead) {
        batch->n_ended_seqs = (decodes ? 0 : known.n_ended_seqs) + known.unknown.n_seqs;
        batch->overrun = (struct overrun){0};
        batch->start_ns = view->now_ns;
    }
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    struct batch *batch = batch_of(self);
    if (r->n_prefill == 0) /* it never ran: it was rejected */
        return;
    batch->left_ns = view->now_ns;
    if (view->limits->plans_ahead) {
        overrun_add(&batch->overrun, view, r);
        return;
    }
    batch->full &= batch->decodes;
    if (!batch->decodes)
        return;
    batch->n_ended_seqs = r->n_seqs + (batch->ended_step == view->step ? batch->n_ended_seqs : 0);
    batch->ended_step = view->step;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct retracting *p = self;
    if (limits->plans_ahead && p->mixed)
        return ifl_fail(error, IFL_E_INPUT,
                        "serving.in_flight.ahead is 1, expected 0 where serving.batching.mixed is "
                        "true");
    if (p->chunk_tokens == 0 || p->chunk_tokens >= limits->block_tokens)
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "serving.batching.chunk_tokens is %d, expected 0 or at least a block's tokens, "
                    "%d",
                    p->chunk_tokens, limits->block_tokens);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_retracting = {
    .kind = IFL_BATCHING,
    .name = "retracting",
    .doc = "prefill first, one prompt in chunks; retracts requests before decodes lack blocks "
           "(SGLang)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct retracting),
    .state_bytes = sizeof(struct batch),
    .leaves_out = true,
    .init = init,
    .on_step_start = on_step_start,
    .steady = ifl_always_steady,
    .on_leave = on_leave,
    .ops.batching = &ops,
};
