/* Chunks as large as the deadlines of the decodes allow (QoServe/Niyama, microsoft/sarathi-serve,
 * branch niyama_asplos2026).
 *
 * All decodes run in every step. Of those with deadlines the one with least slack says how long the
 * step may take: its next token is due at arrival + ttft_slo_s + tokens produced x tpot_slo_s.
 * Prompts share the largest chunk of the grid 128, 256, 512, ... 2048, 2552 whose predicted step
 * time, with a margin of a fifth, is within that slack, the smallest at least; while few blocks are
 * free, at most 512 down to 128. The prediction is a line in decodes and prompt tokens. */
#include "inflight/policy.h"

enum { CHUNK_STEP = 256, LAST_STEPPED_CHUNK = 2048 };
enum { LARGEST_CHUNK = 2552, SCARCE_LARGEST = 512, SCARCE_TOKENS = 1000, SCARCE_DIVISOR = 32 };

struct deadline_chunks {
    int32_t max_seqs;
    int32_t least_chunk_tokens;
    double margin;
    double step_s, prefill_token_s, decode_seq_s;
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct deadline_chunks, max_seqs), 128, 1, 1 << 20, NULL,
     "sequences", "most sequences on the device"},
    {"least_chunk_tokens", IFL_INT, offsetof(struct deadline_chunks, least_chunk_tokens), 128, 1,
     LARGEST_CHUNK, NULL, "tokens", "a step's prompt tokens, however little slack there is"},
    {"margin", IFL_REAL, offsetof(struct deadline_chunks, margin), 1.2, 1, 100, NULL, "",
     "multiplies the predicted step time"},
    {"step_s", IFL_REAL, offsetof(struct deadline_chunks, step_s), 0.01, 0, 3600, NULL, "s",
     "predicted time of a step: this"},
    {"prefill_token_s", IFL_REAL, offsetof(struct deadline_chunks, prefill_token_s), 0.0001, 0,
     3600, NULL, "s", "predicted time of a step: and this for every prompt token"},
    {"decode_seq_s", IFL_REAL, offsetof(struct deadline_chunks, decode_seq_s), 0.0001, 0, 3600,
     NULL, "s", "predicted time of a step: and this for every decode"},
};

struct outlook {
    int64_t due_ns; /* nobody's next token is due before; due times only move on */
};

static struct outlook *outlook_of(const void *self)
{
    return (struct outlook *)((uintptr_t)self + ifl_state_offset(sizeof(struct deadline_chunks)));
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- how large a chunk ---- */

static int64_t due_ns(const struct ifl_request *r)
{
    const double first_ns = r->ttft_slo_ns == IFL_NEVER ? 0 : (double)r->ttft_slo_ns;
    const double due = (double)r->arrival_ns + first_ns + (double)r->n_out * (double)r->tpot_slo_ns;
    return r->tpot_slo_ns == IFL_NEVER || due >= (double)IFL_LAST_NS ? IFL_NEVER : (int64_t)due;
}

/* Of the decodes; prompts on the device are looked at for later. */
static int64_t first_due_ns(const struct deadline_chunks *p, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    struct outlook *outlook = outlook_of(p);
    int64_t first_ns = IFL_NEVER;
    outlook->due_ns = IFL_NEVER;
    for (size_t i = 0; i < running.n; i++) {
        const int64_t next_ns = due_ns(running.of[i]);
        outlook->due_ns = lesser(outlook->due_ns, next_ns);
        if (ifl_decodes(running.of[i]))
            first_ns = lesser(first_ns, next_ns);
    }
    return first_ns;
}

/* In whole nanoseconds, so that a step that ends just in time is in time. */
static bool in_time(const struct deadline_chunks *p, const struct ifl_view *view,
                    const struct ifl_step *step, int32_t chunk, int64_t by_ns)
{
    const double step_s =
        p->step_s + p->prefill_token_s * chunk + p->decode_seq_s * step->n_requests;
    return by_ns == IFL_NEVER || ifl_ns_from_s(p->margin * step_s) <= by_ns - view->now_ns;
}

/* Few plans need to look for who is due first. */
static int32_t largest_in_time(const struct deadline_chunks *p, const struct ifl_view *view,
                               struct ifl_step *step)
{
    if (in_time(p, view, step, LARGEST_CHUNK, outlook_of(p)->due_ns))
        return LARGEST_CHUNK;
    const int64_t by_ns = first_due_ns(p, step);
    int32_t best = p->least_chunk_tokens;
    for (int32_t chunk = CHUNK_STEP; chunk <= LAST_STEPPED_CHUNK; chunk += CHUNK_STEP)
        if (chunk > best && in_time(p, view, step, chunk, by_ns))
            best = chunk;
    return in_time(p, view, step, LARGEST_CHUNK, by_ns) ? LARGEST_CHUNK : best;
}

static int32_t chunk_tokens(const struct deadline_chunks *p, const struct ifl_view *view,
                            struct ifl_step *step)
{
    const int64_t free_tokens = (int64_t)step->n_free_blocks * view->limits->block_tokens;
    int32_t best = largest_in_time(p, view, step);
    if (free_tokens / SCARCE_DIVISOR < SCARCE_TOKENS && best > SCARCE_LARGEST)
        best = SCARCE_LARGEST;
    return best;
}

/* ---- the step ---- */

static int32_t share_of(const struct ifl_step *step, const struct ifl_request *r, int32_t chunk)
{
    const int32_t left = chunk - step->n_prefill_tokens;
    return ifl_todo(r) < left ? ifl_todo(r) : left;
}

/* True unless it must wait. */
static bool start(const struct deadline_chunks *p, struct ifl_step *step,
                  const struct ifl_request *r, int32_t n)
{
    return step->n_running_seqs < p->max_seqs && ifl_settled(step, r, ifl_start(step, r, n));
}

/* Prompts that have begun and those that wait, in one order of rank. The first that must wait holds
 * up those that wait behind it, not those that hold blocks already. */
static void fill_chunk(const struct deadline_chunks *p, struct ifl_step *step, int32_t chunk)
{
    unsigned lists = IFL_IN_PREFILL | IFL_IN_WAITING;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_prefill_tokens < chunk && (r = ifl_next(step, lists, &cursor))) {
        const int32_t n = share_of(step, r, chunk);
        if (r->state == IFL_WAITING && !start(p, step, r, n))
            lists = IFL_IN_PREFILL;
        else if (r->state == IFL_RUNNING && r->n_now == 0 && n > 0)
            ifl_schedule(step, r, n, 0);
    }
}

/* Who starts will be due some day; who comes back from the host, nobody knows when. */
static void look_out(const struct deadline_chunks *p, const struct ifl_view *view,
                     struct ifl_step *step)
{
    const struct ifl_requests started = ifl_started(step);
    struct outlook *outlook = outlook_of(p);
    for (size_t i = 0; i < started.n; i++)
        outlook->due_ns = lesser(outlook->due_ns, due_ns(started.of[i]));
    if (view->n_swapped > 0)
        outlook->due_ns = 0;
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct deadline_chunks *p = self;
    if (!ifl_schedule_ready(step, 0))
        ifl_decode_one_by_one(step, 0);
    if (step->n_preempted > 0)
        return;
    if (view->n_swapped > 0)
        ifl_return_swapped(step, p->max_seqs);
    else if (step->n_waiting > 0 || step->n_requests < step->n_running_requests)
        fill_chunk(p, step, chunk_tokens(p, view, step));
    look_out(p, view, step);
    /* Who waits and was refused lacks seats or blocks, whatever the chunk. */
    ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    (void)limits;
    (void)error;
    outlook_of(self)->due_ns = IFL_NEVER;
    return 0;
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_deadline_chunks = {
    .kind = IFL_BATCHING,
    .name = "deadline-chunks",
    .doc = "decodes in every step, prompts in chunks that the decodes' deadlines allow (QoServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct deadline_chunks),
    .state_bytes = sizeof(struct outlook),
    .init = init,
    .ops.batching = &ops,
};
