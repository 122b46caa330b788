#include "replica/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- creating ---- */

void plan_create(struct plan *plan, const struct ifl_limits *limits, const struct ifl_step_ops *ops)
{
    plan->step.ops = ops;
    plan->step.max_drafts = limits->max_drafts;
    plan->step.max_model_tokens = limits->max_model_tokens;
    plan->slot = -1;
    plan->known_ns = IFL_NEVER;
}

void plan_destroy(struct plan *plan)
{
    void *const arrays[] = {plan->planned, plan->by_start.of, plan->started.of, plan->scheduled.of,
                            plan->outs};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

static int reserve_list(struct snapshot *list, size_t n)
{
    return array_grow(&list->of, list->n, n, sizeof *list->of);
}

/* One array, since of most replicas no page of it is touched but the first. A swap takes a host
 * block; copies are those of groups. */
static int make_room_for_copies(struct plan *plan, const struct ifl_limits *limits, bool groups)
{
    const size_t n_swaps = (size_t)limits->n_host_blocks + 1;
    const size_t n_copies = groups ? (size_t)limits->n_blocks + 1 : 0;
    plan->outs = malloc((2 * n_swaps + n_copies) * sizeof *plan->outs);
    if (!plan->outs)
        return IFL_E_NOMEM;
    plan->ins = plan->outs + n_swaps;
    plan->copies = plan->ins + n_swaps;
    return 0;
}

int plan_reserve(struct plan *plan, const struct ifl_limits *limits, bool groups, size_t n)
{
    if (!plan->outs && make_room_for_copies(plan, limits, groups) < 0)
        return IFL_E_NOMEM;
    if (array_grow(&plan->planned, plan->n_planned, n, sizeof *plan->planned) < 0 ||
        reserve_list(&plan->by_start, n) < 0 || reserve_list(&plan->started, n) < 0 ||
        reserve_list(&plan->scheduled, n) < 0)
        return IFL_E_NOMEM;
    return 0;
}

/* ---- opening ---- */

static int32_t running_seqs(const struct here *here, int32_t max_samples)
{
    int32_t n = (int32_t)here->running.n;
    if (IFL_RARE(max_samples > 1))
        FOR_EACH_LIVE (r, &here->running, ON_DEVICE)
            n += r->pub.n_seqs - 1;
    return n;
}

/* Resets what the policy holds, field by field: clearing it first would cost as much as a plan. */
static void open_step(struct plan *plan, const struct here *here, const struct accounts *kv,
                      int32_t max_samples)
{
    struct ifl_step *step = &plan->step;
    step->asked = 1u << IFL_BATCHING;
    step->note = 0;
    step->n_tokens = step->n_requests = 0;
    step->n_prefill_tokens = step->n_prefill_requests = 0;
    step->n_running_requests = (int32_t)here->running.n;
    step->n_running_seqs = running_seqs(here, max_samples);
    step->n_in_prefill = here->n_in_prefill;
    step->n_waiting = (int32_t)here->waiting.n;
    step->n_swapped = (int32_t)here->n_swapped;
    step->n_free_blocks = kv->device.n_free;
    step->n_free_host_blocks = kv->host.n_free;
    step->n_started = step->n_preempted = step->n_swapped_out = step->n_swapped_in = 0;
}

static void forget_refusals(struct plan *plan)
{
    for (unsigned left = plan->refused_states; left > 0; left &= left - 1)
        plan->refused[__builtin_ctz(left)].r = NULL;
    plan->refused_states = 0;
}

void plan_open(struct plan *plan, const struct here *here, const struct accounts *kv,
               int32_t max_samples)
{
    plan->n_planned = plan->n_decodes = plan->n_members = 0;
    plan->n_outs = plan->n_ins = plan->n_copies = 0;
    plan->n_rejected = plan->n_ended_victims = 0;
    plan->ready_all = false;
    plan->by_start.taken = false;
    plan->started.n = 0;
    plan->first_start = here->n_starts;
    plan->refused_until_ns = IFL_NEVER;
    forget_refusals(plan);
    open_step(plan, here, kv, max_samples);
}

void plan_begin(struct plan *plan, bool plans_ahead, int64_t known_ns)
{
    ifl_assert(!plan->planning);
    plan->n_begun++;
    plan->promise = (struct ifl_promise){0};
    plan->overruled = false;
    plan->padding = (struct ifl_padding){0};
    plan->plans_ahead = plans_ahead;
    plan->known_ns = known_ns;
    plan->planning = true;
}

void plan_break(struct plan *plan, const struct ifl_error *error)
{
    if (!plan->broken)
        plan->error = *error;
    plan->broken = true;
}

/* ---- copies ---- */

void plan_swap_out_from(struct plan *plan, const struct live_request *r, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        plan->outs[plan->n_outs + (size_t)i].from = live_block(r, i);
}

void plan_swap_out_to(struct plan *plan, const struct live_request *r, int32_t n, bool numbered)
{
    for (int32_t i = 0; i < n && numbered; i++)
        plan->outs[plan->n_outs + (size_t)i].to = live_block(r, i);
    plan->n_outs += (size_t)n;
}

void plan_swap_in_from(struct plan *plan, const struct live_request *r, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        plan->ins[plan->n_ins + (size_t)i].from = live_block(r, i);
}

void plan_swap_in_to(struct plan *plan, const struct live_request *r, int32_t n, bool numbered)
{
    for (int32_t i = 0; i < n && numbered; i++)
        plan->ins[plan->n_ins + (size_t)i].to = live_block(r, i);
    plan->n_ins += (size_t)n;
}

void plan_forget_copies_from(struct plan *plan, uint32_t from)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_copies; i++)
        if (plan->copies[i].from != from)
            plan->copies[n++] = plan->copies[i];
    plan->n_copies = n;
}

static bool is_one_of(const uint32_t *blocks, int32_t n, uint32_t block)
{
    for (int32_t i = 0; i < n; i++)
        if (blocks[i] == block)
            return true;
    return false;
}

void plan_forget_copies_to(struct plan *plan, const uint32_t *to, int32_t n_to)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_copies; i++)
        if (!is_one_of(to, n_to, plan->copies[i].to))
            plan->copies[n++] = plan->copies[i];
    plan->n_copies = n;
}

/* ---- tokens ---- */

/* Takes r out of `planned`. Returns the tokens that the plan has counted for it, *n_draft of them
 * in place of guesses or guessed. */
static int32_t forget_planned(struct plan *plan, const struct live_request *r, int32_t *n_draft)
{
    for (size_t i = 0; i < plan->n_planned; i++)
        if (plan->planned[i].r == r) {
            plan->planned[i].r = NULL;
            plan->n_decodes -= plan->planned[i].decodes;
            plan->n_members -= r->in_cohort;
            *n_draft = plan->planned[i].n_draft;
            return plan->planned[i].n_tokens;
        }
    *n_draft = cohort_n_draft(r); /* one of the cohort */
    return r->pub.n_seqs + *n_draft;
}

void plan_remove(struct plan *plan, const struct live_request *r)
{
    struct ifl_step *step = &plan->step;
    int32_t n_draft;
    const int32_t n_tokens = forget_planned(plan, r, &n_draft);
    step->n_tokens -= n_tokens;
    step->n_requests--;
    if (!request_decodes(&r->pub)) {
        step->n_prefill_tokens -= n_tokens - n_draft;
        step->n_prefill_requests--;
    }
}

bool plan_forget_prompt(struct plan *plan, const struct live_request *r)
{
    const size_t n_before = plan->n_planned;
    size_t n = 0;
    for (size_t i = 0; i < n_before; i++)
        if (plan->planned[i].r != r)
            plan->planned[n++] = plan->planned[i];
    plan->n_planned = n;
    return n < n_before;
}

void plan_exchange(struct plan *plan, struct planned **of, size_t *n)
{
    struct planned *planned = plan->planned;
    const size_t n_planned = plan->n_planned;
    plan->planned = *of;
    plan->n_planned = *n;
    *of = planned;
    *n = n_planned;
}

void plan_close_gaps(struct plan *plan)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_planned; i++)
        if (plan->planned[i].r)
            plan->planned[n++] = plan->planned[i];
    plan->n_planned = n;
}

void plan_pad_for_ended(struct plan *plan, const struct planned *one)
{
    ifl_assert(!one || one->r->ended);
    if (IFL_RARE(one != NULL) && !plan->pads_for_ended)
        plan->for_ended = (struct ifl_padding){0};
    plan->pads_for_ended = one != NULL;
    if (!IFL_RARE(one != NULL))
        return;
    plan->for_ended.n_decode_seqs += one->n_tokens;
    plan->for_ended.decode_context += (int64_t)one->n_tokens * one->r->pub.stale.n_tokens;
}

/* ---- lists ---- */

void plan_take_by_start(struct plan *plan, const struct live_list *running)
{
    struct snapshot *list = &plan->by_start;
    list->taken = true;
    list->n = 0;
    FOR_EACH_LIVE (r, running, ON_DEVICE) {
        if (r->pub.start_serial >= plan->first_start)
            break;
        if (plan_shows(plan, r))
            list->of[list->n++] = &r->pub;
    }
}

struct ifl_requests plan_list_scheduled(struct plan *plan, const struct cohort *cohort)
{
    struct snapshot *list = &plan->scheduled;
    list->n = 0;
    for (size_t i = 0; i < plan->n_planned; i++)
        if (plan->planned[i].r)
            list->of[list->n++] = &plan->planned[i].r->pub;
    if (plan->ready_all)
        FOR_EACH_LIVE (r, &cohort->members, AMONG_PEERS)
            list->of[list->n++] = &r->pub;
    return (struct ifl_requests){list->of, list->n};
}
