#include "inspector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a plan ---- */

static struct inspector *watching;

static void watch_plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct inspector *x = watching;
    const size_t n = module_bytes_of(self);
    memcpy(x->self_before, self, n);
    x->planner->ops.batching->plan(self, view, step);
    if (memcmp(x->self_before, self, n) != 0 && !*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "step %llu: the plan of %s changes its state",
                 (unsigned long long)view->step, x->planner->name);
}

static int watch_planner(struct inspector *x)
{
    static const struct ifl_batching_ops ops = {watch_plan};
    struct module *batching = &x->replica->fixed.modules[IFL_BATCHING];
    watching = x;
    x->planner = batching->policy;
    x->watched = *batching->policy;
    x->watched.ops.batching = &ops;
    x->self_before = malloc(module_bytes_of(batching->self) + 1);
    batching->policy = &x->watched;
    return x->self_before ? 0 : IFL_E_NOMEM;
}

/* ---- creation and end ---- */

int inspector_create(struct inspector *x)
{
    const struct ifl_limits *limits = &x->replica->fixed.limits;
    const size_t n = (size_t)limits->n_blocks + 1, n_host = (size_t)limits->n_host_blocks + 1;
    x->owners = calloc(n, sizeof *x->owners);
    x->slots = calloc(n * (size_t)limits->block_tokens, sizeof *x->slots);
    x->host = calloc(n_host * (size_t)limits->block_tokens, sizeof *x->host);
    return x->owners && x->slots && x->host && watch_planner(x) == 0 ? 0 : IFL_E_NOMEM;
}

void inspector_destroy(struct inspector *x)
{
    free(x->owners);
    free(x->slots);
    free(x->host);
    free(x->self_before);
}

static void complain(struct inspector *x, const char *what, const struct ifl_request *r)
{
    if (!*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "step %llu, request %llu: %s",
                 (unsigned long long)x->replica->view.step, (unsigned long long)r->serial, what);
}

/* ---- tokens in slots ---- */

/* The sequence that produced the token at place i: a beam that forked has tokens of its ancestors.
 */
static int32_t author(const struct beam_search *search, const struct ifl_work *w, int32_t i)
{
    const struct ifl_request *r = w->request;
    int32_t seq = w->seq;
    for (int32_t n_out = ifl_n_out(r); r->forks && n_out > i - r->n_prompt + 1; n_out--)
        seq = beam_parent(search, ((const struct live_request *)r)->row, n_out, seq, r->n_seqs);
    return seq;
}

/* An id of the token at place i; equal for two requests if the trace gives both the same token. */
static uint64_t token_at(const struct inspector *x, const struct ifl_work *w, int32_t i)
{
    const struct ifl_request *r = w->request;
    const uint64_t at = (uint64_t)i + 1;
    if (i < w->stream_tokens)
        return (uint64_t)1 << 62 | (uint64_t)r->prefix_group << 32 | at;
    if (i < w->named_tokens)
        return (uint64_t)1 << 63 | r->hash_ids[i / r->hash_id_tokens] << 32 | at;
    const int32_t seq = i < r->n_prompt ? 0 : author(&x->replica->fixed.beams, w, i);
    return (uint64_t)seq << 50 | r->serial << 32 | at;
}

static uint64_t *slot(struct inspector *x, const struct ifl_work *w, int32_t i)
{
    const int32_t block_tokens = x->replica->fixed.limits.block_tokens;
    return &x->slots[(size_t)w->blocks[i / block_tokens] * (size_t)block_tokens +
                     (size_t)(i % block_tokens)];
}

/* Where tokens have been given up the slot of the token at place i; else that place. */
static int32_t slot_of(const struct ifl_work *w, int32_t i)
{
    return i - w->request->stale.n_dropped;
}

/* What was gathered or written over is no token of a prefix that another request may find. */
static void spoil_kept(struct inspector *x, const struct ifl_work *w)
{
    const int32_t block_tokens = x->replica->fixed.limits.block_tokens;
    for (int32_t i = 0; i < w->n_blocks; i++)
        if (kv_refs(&x->replica->kv.device, w->blocks[i]) != 1)
            complain(x, "keeps K/V where another reads", w->request);
    for (int32_t i = 0; i < w->n_blocks * block_tokens; i++)
        *slot(x, w, i) = 0;
}

static void read_context(struct inspector *x, const struct ifl_work *w)
{
    for (int32_t i = 0; i < w->n_context && w->request->stale.n_dropped == 0; i++)
        if (*slot(x, w, i) != token_at(x, w, i)) {
            complain(x, "reads a token that is not its own", w->request);
            return;
        }
}

/* The number of later requests of the step that share w's block i and have it in their context. */
static uint32_t later_readers(const struct inspector *x, const struct ifl_work *w,
                              const struct ifl_work *end, int32_t i)
{
    const int32_t block_tokens = x->replica->fixed.limits.block_tokens;
    uint32_t n = 0;
    for (const struct ifl_work *later = w + 1; later < end; later++)
        n += later->request != w->request && later->seq == 0 &&
             later->n_context >= (i + 1) * block_tokens && later->blocks[i] == w->blocks[i];
    return n;
}

static void write_new(struct inspector *x, const struct ifl_work *w, const struct ifl_work *end)
{
    const int32_t block_tokens = x->replica->fixed.limits.block_tokens;
    if (w->request->stale.n_dropped > 0)
        spoil_kept(x, w);
    for (int32_t i = slot_of(w, w->n_context); i < slot_of(w, w->n_context + w->n_new); i++) {
        const uint32_t n_refs = kv_refs(&x->replica->kv.device, w->blocks[i / block_tokens]);
        if (n_refs != 1 && n_refs != 1 + later_readers(x, w, end, i / block_tokens))
            complain(x, "writes where another reads", w->request);
        *slot(x, w, i) = token_at(x, w, i + w->request->stale.n_dropped);
    }
}

static void copy(struct inspector *x, uint64_t *to, const uint64_t *from,
                 const struct ifl_copy *copies, size_t n)
{
    const size_t block_tokens = (size_t)x->replica->fixed.limits.block_tokens;
    for (size_t i = 0; i < n; i++)
        memcpy(to + copies[i].to * block_tokens, from + copies[i].from * block_tokens,
               block_tokens * sizeof *to);
}

/* ---- a step ---- */

static void inspect_work(struct inspector *x, const struct ifl_work *w)
{
    const int64_t slots = (int64_t)w->n_blocks * x->replica->fixed.limits.block_tokens;
    if (w->request->state != IFL_RUNNING)
        complain(x, "computes and is not on the device", w->request);
    if (w->n_new <= 0)
        complain(x, "computes nothing", w->request);
    const int32_t n_late = live(w->request)->n_late - w->samples; /* of steps in front of it */
    const int32_t n_tokens = ifl_n_tokens(w->request) + (n_late > 0 ? n_late : 0);
    if (w->samples != (w->n_context + w->n_new - w->n_draft == n_tokens))
        complain(x, "samples at the wrong token", w->request);
    if (slot_of(w, w->n_context + w->n_new) > slots)
        complain(x, "computes without its blocks", w->request);
    else
        read_context(x, w);
}

/* Before a pool has memory no block of it has an owner. */
static uint32_t references(const struct kv_pool *kv, int32_t block)
{
    return kv->numbers && kv_is_open(kv) ? kv_refs(kv, (uint32_t)block) : 0;
}

/* The reference count of a block is the number of requests that hold it: at most one if no blocks
 * are shared. */
/* Blocks of layers with a window: all requests on the device have some, no block twice. */
static int32_t inspect_windows(struct inspector *x)
{
    const struct windows *windows = &x->replica->windows;
    int32_t n = 0;
    FOR_EACH_LIVE (r, &x->replica->here.running, ON_DEVICE) {
        n += r->n_window_blocks;
        if (x->replica->fixed.windows.n_groups > 0 && r->n_window_blocks == 0)
            complain(x, "has no blocks for its windows", &r->pub);
    }
    if (n != windows->n_blocks && !*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "%d blocks of windows, %d said", n,
                 windows->n_blocks);
    for (int32_t i = 0; i < windows->n_blocks; i++)
        if (x->owners[windows->numbers[i]]++ && !*x->complaint)
            snprintf(x->complaint, x->complaint_bytes, "block %u has two owners",
                     windows->numbers[i]);
    return windows->n_blocks;
}

static void inspect_blocks(struct inspector *x)
{
    const struct kv_pool *kv = &x->replica->kv.device;
    int32_t n_held = 0, n_owners = 0;
    memset(x->owners, 0, (size_t)kv->n_blocks * sizeof *x->owners);
    FOR_EACH_LIVE (r, &x->replica->here.running, ON_DEVICE)
        for (int32_t i = 0; i < r->pub.stale.n_blocks; i++) {
            n_owners++;
            n_held += x->owners[r->blocks[i]] == 0;
            if (x->owners[r->blocks[i]]++ && !kv->cached)
                complain(x, "shares a block", &r->pub);
        }
    for (uint32_t a = 1; a <= x->replica->adapters.fixed.n; a++) {
        const struct adapter_state *adapter = &x->replica->adapters.of[a];
        for (int32_t i = 0; adapter->n_users > 0 && x->replica->adapters.fixed.in_pool &&
                            i < x->replica->adapters.fixed.of[a].n_blocks;
             i++) {
            n_owners++;
            n_held += x->owners[adapter->blocks[i]]++ == 0;
        }
    }
    n_held += inspect_windows(x);
    n_owners += x->replica->windows.n_blocks;
    for (int32_t i = 0; i < kv->n_blocks; i++)
        if (x->owners[i] != references(kv, i) && !*x->complaint)
            snprintf(x->complaint, x->complaint_bytes, "block %d: %u owners, %u references", i,
                     (unsigned)x->owners[i], (unsigned)references(kv, i));
    const int32_t n_used = kv_used(kv) - kv_slack(kv);
    if (n_owners - n_held != kv->n_shared && !*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "%d blocks saved by sharing, %d said",
                 n_owners - n_held, kv->n_shared);
    if (n_held != n_used && !*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "%d blocks held, %d used", n_held, n_used);
}

/* Counts slots with K/V of running requests, a shared block once. */
static void inspect_accounts(struct inspector *x)
{
    const int32_t block_tokens = x->replica->fixed.limits.block_tokens;
    int64_t n_slots = 0;
    memset(x->owners, 0, (size_t)x->replica->kv.device.n_blocks * sizeof *x->owners);
    FOR_EACH_LIVE (r, &x->replica->here.running, ON_DEVICE)
        for (int32_t i = 0; i < r->pub.stale.n_blocks; i++) {
            const int32_t in_block = r->pub.stale.n_computed - i * block_tokens;
            if (x->owners[r->blocks[i]]++ == 0 && in_block > 0)
                n_slots += in_block < block_tokens ? in_block : block_tokens;
        }
    if (n_slots != x->replica->kv.token_slots && !*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "step %llu: %lld slots hold tokens, %lld said",
                 (unsigned long long)x->replica->view.step, (long long)n_slots,
                 (long long)x->replica->kv.token_slots);
}

/* Where K/V is given up: slots of running requests, counted one by one, with the tokens of this
 * step; and what its decodes read. */
static void inspect_kept(struct inspector *x, const struct ifl_step_desc *desc)
{
    const struct replica *replica = x->replica;
    const struct cohort *cohort = &replica->here.cohort;
    int64_t n_slots = 0, n_read = 0;
    FOR_EACH_LIVE (r, &replica->here.running, ON_DEVICE) {
        const bool ticks = r->in_cohort && replica->in_flight.ticks;
        const int64_t n_ticks = r->in_cohort ? cohort->tick - r->synced_tick : 0;
        const int64_t n_has = live_slots_after(r, n_ticks);
        n_slots += n_has + ticks;
        n_read += ticks ? n_has + 1 - r->n_unread : 0;
        if (n_has > r->pub.stale.n_blocks * (int64_t)cohort->block.tokens)
            complain(x, "has more slots than blocks for them", &r->pub);
        if (r->most_slots > 0 && n_has > r->most_slots)
            complain(x, "keeps more than its budget", &r->pub);
    }
    if (n_read != desc->totals.decode_context && !*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "step %llu reads %lld tokens, %lld said",
                 (unsigned long long)desc->step, (long long)n_read,
                 (long long)desc->totals.decode_context);
    if (!replica->kv.device.cached && n_slots != replica->kv.token_slots && !*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "step %llu: %lld slots hold tokens, %lld said",
                 (unsigned long long)desc->step, (long long)n_slots,
                 (long long)replica->kv.token_slots);
}

static void inspect_prefills(struct inspector *x)
{
    int32_t n = 0;
    FOR_EACH_LIVE (r, &x->replica->here.running, ON_DEVICE)
        n += !r->in_cohort && !ifl_decodes(&r->pub);
    if (n != x->replica->here.n_in_prefill && !*x->complaint)
        snprintf(x->complaint, x->complaint_bytes, "step %llu: %d are in prefill, %d said",
                 (unsigned long long)x->replica->view.step, n, x->replica->here.n_in_prefill);
}

/* All sequences read before any writes, with two exceptions: the other sequences of a group read
 * tokens that its first computes in the same step; and with published plans a request reads those
 * of earlier requests of the step. */
static void inspect_sequences(struct inspector *x, const struct ifl_step_desc *desc, bool others)
{
    const bool in_turn = x->replica->kv.device.cache.options.publish == KV_PUBLISH_SCHEDULED;
    const struct ifl_work *const end = desc->work + desc->n_work;
    for (const struct ifl_work *w = desc->work; w < end && !in_turn; w++)
        if ((w->seq > 0) == others)
            inspect_work(x, w);
    for (const struct ifl_work *w = desc->work; w < end && !*x->complaint; w++) {
        if ((w->seq > 0) != others)
            continue;
        if (in_turn)
            inspect_work(x, w);
        write_new(x, w, end);
    }
}

static int64_t inspector_now(void *self)
{
    return ((struct inspector *)self)->sim.now_ns;
}

static int inspector_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct inspector *x = self;
    inspect_blocks(x);
    inspect_prefills(x);
    if (x->replica->fixed.gives_up)
        inspect_kept(x, desc);
    copy(x, x->host, x->slots, desc->outs, desc->n_outs);
    copy(x, x->slots, x->host, desc->ins, desc->n_ins);
    copy(x, x->slots, x->slots, desc->copies, desc->n_copies);
    for (int32_t others = 0; others < 2; others++)
        inspect_sequences(x, desc, others);
    return executor_sim_ops.submit(&x->sim, desc, error);
}

static int inspector_next(void *self, int64_t until_ns, struct ifl_done *done,
                          struct ifl_error *error)
{
    return executor_sim_ops.next(&((struct inspector *)self)->sim, until_ns, done, error);
}

static int64_t inspector_begins(void *self, uint32_t replica)
{
    return executor_sim_ops.begins(&((struct inspector *)self)->sim, replica);
}

const struct ifl_executor_ops inspector_ops = {
    .size_bytes = sizeof(struct ifl_executor_ops),
    .name = "inspector",
    .wants_work = true,
    .now = inspector_now,
    .submit = inspector_submit,
    .next = inspector_next,
    .begins = inspector_begins,
};

void inspector_end(struct inspector *x)
{
    const struct replica *replica = x->replica;
    inspect_blocks(x);
    inspect_accounts(x);
    if (*x->complaint)
        return;
    if (replica->kv.device.n_free != replica->kv.device.n_blocks ||
        kv_slack(&replica->kv.device) != 0 || replica->kv.host.n_free != replica->kv.host.n_blocks)
        snprintf(x->complaint, x->complaint_bytes, "blocks are lost at the end");
    if (replica->kv.internal_slots != 0 || replica->kv.token_slots != 0 ||
        replica->kv.n_group_saved != 0)
        snprintf(x->complaint, x->complaint_bytes, "the KV accounts do not close");
    if (replica->here.waiting.n_tokens != 0 || replica->here.waiting.n_blocks != 0)
        snprintf(x->complaint, x->complaint_bytes, "the sums of the empty queue are not 0");
}
