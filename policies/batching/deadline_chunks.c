/* Chunks as large as the deadlines of the decodes allow (QoServe/Niyama, microsoft/sarathi-serve,
 * branch niyama_asplos2026, deadline_scheduler.py, _get_prefill_size_by_slack).
 *
 * All decodes run in every step. The decode with the least slack bounds the time of the step. Its
 * next token, number n of the answer, is due n x tpot_slo_s after its first token or after arrival
 * + ttft_slo_s, whichever is later.
 *
 * The step gets the largest number of tokens from a grid (128, 256, 512, ... 2048, 2552) with a
 * predicted time, times a margin, within that slack, and at least 128. While few blocks are free
 * the grid is 128, 256, 384, 512. Tokens that the decodes leave go to prompts.
 *
 * A linear model predicts the time, another one that of steps of more than 512 tokens. At the
 * boundary more tokens may be predicted to take less time; the bisection over the grid is kept as
 * in the original. */
#include <math.h>

#include "inflight/minmax.h"
#include "inflight/policy.h"

enum { SCARCE_TOKENS = 1000, SCARCE_DIVISOR = 32 };

static const int32_t grid[] = {128, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2552};
static const int32_t scarce_grid[] = {128, 256, 384, 512};

struct line {
    double step_s, prefill_token_s, decode_seq_s, prefill_context_s, decode_context_s;
};

struct deadline_chunks {
    int32_t max_seqs;
    double margin;
    int32_t long_tokens;
    struct line line, long_line;
};

#define LINE(field) offsetof(struct deadline_chunks, line.field)
#define LONG_LINE(field) offsetof(struct deadline_chunks, long_line.field)

/* Defaults of the linear models are those of the branch, fitted to Llama-3-8B on its GPU. */
static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct deadline_chunks, max_seqs), 512, 1, 1 << 20, NULL,
     "sequences", "most sequences on the device"},
    {"margin", IFL_REAL, offsetof(struct deadline_chunks, margin), 1.2, 1, 100, NULL, "",
     "multiplies the predicted step time"},
    {"step_s", IFL_REAL, LINE(step_s), 0.014936, -3600, 3600, NULL, "s",
     "predicted time of a step: constant part"},
    {"prefill_token_s", IFL_REAL, LINE(prefill_token_s), 8.130431e-5, -3600, 3600, NULL, "s",
     "predicted time of a step: per prompt token"},
    {"decode_seq_s", IFL_REAL, LINE(decode_seq_s), 9.516994e-5, -3600, 3600, NULL, "s",
     "predicted time of a step: per decode"},
    {"prefill_context_s", IFL_REAL, LINE(prefill_context_s), 7.554773e-7, -3600, 3600, NULL, "s",
     "predicted time of a step: per earlier token of the first prompt"},
    {"decode_context_s", IFL_REAL, LINE(decode_context_s), 1.111258e-7, -3600, 3600, NULL, "s",
     "predicted time of a step: per token of context of decodes"},
    {"long_tokens", IFL_INT, offsetof(struct deadline_chunks, long_tokens), 512, 0, 1 << 30, NULL,
     "tokens", "steps with more tokens are long; their time has the long_ coefficients"},
    {"long_step_s", IFL_REAL, LONG_LINE(step_s), 0.005004, -3600, 3600, NULL, "s",
     "as step_s, of long steps"},
    {"long_prefill_token_s", IFL_REAL, LONG_LINE(prefill_token_s), 9.582093e-5, -3600, 3600, NULL,
     "s", "as prefill_token_s, of long steps"},
    {"long_decode_seq_s", IFL_REAL, LONG_LINE(decode_seq_s), -1.424943e-5, -3600, 3600, NULL, "s",
     "as decode_seq_s, of long steps"},
    {"long_prefill_context_s", IFL_REAL, LONG_LINE(prefill_context_s), 2.727223e-6, -3600, 3600,
     NULL, "s", "as prefill_context_s, of long steps"},
    {"long_decode_context_s", IFL_REAL, LONG_LINE(decode_context_s), 1.663409e-7, -3600, 3600, NULL,
     "s", "as decode_context_s, of long steps"},
};

struct outlook {
    size_t n_due; /* requests here with a tpot_slo_s */
};

static struct outlook *outlook_of(const void *self)
{
    return ifl_state(self);
}

/* ---- the earliest deadline ---- */

static int64_t due_ns(const struct ifl_request *r)
{
    const double first_ns = r->ttft_slo_ns == IFL_NEVER ? 0 : (double)r->ttft_slo_ns;
    const double from_ns = (double)r->arrival_ns + first_ns;
    const double had_ns = r->first_token_ns == IFL_NEVER ? 0 : (double)r->first_token_ns;
    const double due = fmax(had_ns, from_ns) + (ifl_n_out(r) + 1.0) * (double)r->tpot_slo_ns;
    return r->tpot_slo_ns == IFL_NEVER || due >= (double)IFL_LAST_NS ? IFL_NEVER : (int64_t)due;
}

struct load {      /* what a step computes besides prompt tokens */
    int64_t by_ns; /* the earliest deadline of a decode */
    int64_t decode_context, prefill_context;
    int32_t n_decodes;
};

/* Sums over the decodes; the context of the first prompt in rank order counts, too. */
static struct load load_of(struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *first = ifl_next(step, IFL_IN_PREFILL | IFL_IN_WAITING, &cursor);
    struct load load = {IFL_NEVER, 0, first ? ifl_n_computed(first) : 0, step->n_requests};
    for (size_t i = 0; i < running.n; i++)
        if (ifl_decodes(running.of[i])) {
            load.by_ns = ifl_min(load.by_ns, due_ns(running.of[i]));
            load.decode_context += ifl_n_tokens(running.of[i]);
        }
    return load;
}

/* ---- how large a chunk ---- */

static int32_t left_of(int32_t n_tokens, const struct load *load)
{
    return n_tokens > load->n_decodes ? n_tokens - load->n_decodes : 0;
}

/* The times are compared in whole nanoseconds, so that a step that ends exactly at the deadline is
 * in time. */
static bool in_time(const struct deadline_chunks *p, const struct ifl_view *view,
                    const struct load *load, int32_t n_tokens)
{
    const int32_t chunk = left_of(n_tokens, load);
    const struct line *line = chunk + load->n_decodes > p->long_tokens ? &p->long_line : &p->line;
    const double step_s = line->step_s + line->prefill_token_s * chunk +
                          line->decode_seq_s * load->n_decodes +
                          line->prefill_context_s * (double)load->prefill_context +
                          line->decode_context_s * (double)load->decode_context;
    return load->by_ns == IFL_NEVER ||
           ifl_ns_from_s(p->margin * step_s) <= load->by_ns - view->now_ns;
}

static int32_t search(const struct deadline_chunks *p, const struct ifl_view *view,
                      const struct load *load, const int32_t *of, size_t n)
{
    size_t low = 0, high = n;
    int32_t best = of[0];
    while (low < high && load->by_ns > view->now_ns) {
        const size_t middle = (low + high - 1) / 2;
        if (in_time(p, view, load, of[middle])) {
            best = of[middle];
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return best;
}

/* Skips the scan when no request has a pending deadline. */
static int32_t chunk_tokens(const struct deadline_chunks *p, const struct ifl_view *view,
                            struct ifl_step *step)
{
    const int64_t free_tokens = (int64_t)step->n_free_blocks * view->limits->block_tokens;
    const bool scarce = free_tokens / SCARCE_DIVISOR < SCARCE_TOKENS;
    const int32_t *of = scarce ? scarce_grid : grid;
    const size_t n = scarce ? sizeof scarce_grid / sizeof *scarce_grid : sizeof grid / sizeof *grid;
    struct load load = {.by_ns = IFL_NEVER, .n_decodes = step->n_requests};
    if (outlook_of(p)->n_due > 0)
        load = load_of(step);
    return left_of(search(p, view, &load, of, n), &load);
}

/* ---- the step ---- */

static int32_t share_of(const struct ifl_step *step, const struct ifl_request *r, int32_t chunk)
{
    const int32_t left = chunk - step->n_prefill_tokens;
    return ifl_min(ifl_todo(r), left);
}

/* Returns false if r must wait. */
static bool start(const struct deadline_chunks *p, struct ifl_step *step,
                  const struct ifl_request *r, int32_t n)
{
    return ifl_dropped_as_too_wide(step, r, p->max_seqs) ||
           (step->n_running_seqs < p->max_seqs && ifl_settled(step, r, ifl_start(step, r, n)));
}

/* Gives tokens to begun and waiting prompts in one rank order. The first that must wait blocks the
 * waiting prompts behind it, but not those that have begun. */
static void fill_chunk(const struct deadline_chunks *p, struct ifl_step *step, int32_t chunk)
{
    unsigned lists = IFL_IN_PREFILL | IFL_IN_WAITING;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_prefill_tokens < chunk && (r = ifl_next(step, lists, &cursor))) {
        const int32_t n = share_of(step, r, chunk);
        if (r->state != IFL_RUNNING && !start(p, step, r, n))
            lists = IFL_IN_PREFILL;
        else if (r->state == IFL_RUNNING && ifl_n_now(r) == 0 && n > 0)
            ifl_schedule(step, r, n, 0);
    }
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct deadline_chunks *p = self;
    if (!ifl_schedule_ready(step, 0))
        ifl_decode_one_by_one(step, 0);
    if (step->n_preempted > 0)
        return;
    const bool wanted = view->n_swapped == 0 &&
                        (step->n_waiting > 0 || step->n_requests < step->n_running_requests);
    const int32_t chunk = wanted ? chunk_tokens(p, view, step) : 0;
    if (view->n_swapped > 0)
        ifl_return_swapped(step, p->max_seqs);
    fill_chunk(p, step, chunk);
    /* If the chunk is above 0, requests that still wait lack seats or blocks, whatever the size of
     * the chunk. */
    if (chunk > 0 || !wanted)
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
    outlook_of(self)->n_due += r->tpot_slo_ns != IFL_NEVER;
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    (void)view;
    outlook_of(self)->n_due -= r->tpot_slo_ns != IFL_NEVER;
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_deadline_chunks = {
    .kind = IFL_BATCHING,
    .name = "deadline-chunks",
    .doc = "decodes in every step, and prompt chunks as large as the decodes' deadlines allow "
           "(QoServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct deadline_chunks),
    .state_bytes = sizeof(struct outlook),
    .on_join = on_join,
    .on_leave = on_leave,
    .ops.batching = &ops,
};
