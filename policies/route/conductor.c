/* The prefill replica with the earliest first token, by the contents of prefix caches, as
 * Mooncake's Conductor picks it (arXiv 2407.00079, Algorithm 1). A prompt has n tokens, of which a
 * replica has h in its cache and the replica with the most has H. The estimate is
 *
 *     queue + prefill(n, h)                      if H / h < balancing, or h = H
 *     transfer(H - h) + queue + prefill(n, H)    else: K/V comes from where most of it is
 *
 * where prefill(n, h) = prefill_token_s (n - h) + prefill_square_s (n^2 - h^2), transfer(k) =
 * transfer_token_s k, and queue is the sum of the prefills of the requests sent there that have no
 * first token yet. Of equal estimates the lowest number is taken.
 *
 * The decode replica is the one with the fewest prompt tokens of the requests sent to it. Its steps
 * are taken to last decode_step_s + decode_token_s x tokens. Early rejection (section 7): a request
 * is dropped at its arrival if its first token would come after ttft_s, or if the steps would last
 * longer than tbt_s. Their tokens are those of its prompt and of
 *
 *     early      requests that decode there now
 *     predicted  requests that will decode there when its prompt is done: each is taken to decode
 *                for decode_s from the end of its prompt on (section 7.4)
 *
 * The paper gives no value for balancing, and no models of time. Its Conductor moves K/V itself;
 * here the store of the prefill pool does (serving.kv.tiers.store). `predicted` looks at each
 * request in progress. */
#include <stdlib.h>

#include "inflight/minmax.h"
#include "inflight/policy.h"

enum reject { REJECT_NONE, REJECT_EARLY, REJECT_PREDICTED };

struct conductor {
    double balancing, decode_token_s, prefill_token_s, prefill_square_s, transfer_token_s;
    int64_t decode_step_ns, ttft_ns, tbt_ns, decode_ns;
    int32_t reject, max_reqs;
};

static const struct ifl_param params[] = {
    {"balancing", IFL_REAL, offsetof(struct conductor, balancing), 4, 1, 1e9, NULL, "",
     "K/V is moved if the best match is at least this many times the replica's own "
     "(kvcache_balancing_threshold)"},
    {"prefill_token_s", IFL_REAL, offsetof(struct conductor, prefill_token_s), 1e-4, 0, 1000, NULL,
     "s", "time to compute a prompt token"},
    {"prefill_square_s", IFL_REAL, offsetof(struct conductor, prefill_square_s), 0, 0, 1, NULL, "s",
     "time per square of prompt tokens, less the square of cached tokens"},
    {"transfer_token_s", IFL_REAL, offsetof(struct conductor, transfer_token_s), 3.3e-6, 0, 1000,
     NULL, "s", "time to move a token's K/V (320 KiB at 100 GB/s: Llama-2-70B)"},
    {"decode_step_s", IFL_TIME, offsetof(struct conductor, decode_step_ns), 0.025, 0, 1000, NULL,
     "s", "time of a step of a decode replica"},
    {"decode_token_s", IFL_REAL, offsetof(struct conductor, decode_token_s), 2.7e-8, 0, 1, NULL,
     "s", "additional time per token of the prompts that decode there"},
    {"reject", IFL_CHOICE, offsetof(struct conductor, reject), REJECT_NONE, 0, 0,
     "none|early|predicted", "",
     "requests that would be late: are not dropped; are dropped, judged by present decodes, or by "
     "those expected"},
    {"ttft_s", IFL_TIME, offsetof(struct conductor, ttft_ns), 30, 0, 1e9, NULL, "s",
     "limit of the time to the first token"},
    {"tbt_s", IFL_TIME, offsetof(struct conductor, tbt_ns), 0.1, 0, 1e9, NULL, "s",
     "limit of the time of a step"},
    {"decode_s", IFL_TIME, offsetof(struct conductor, decode_ns), 10, 0, 1e9, NULL, "s",
     "reject predicted: assumed decode time of a request"},
    {"max_reqs", IFL_INT, offsetof(struct conductor, max_reqs), 1 << 16, 1, (1 << 24) - 1, NULL,
     "requests", "most requests in progress that are counted"},
};

enum stage { IS_FREE, IS_QUEUED, DECODES };

/* A request under way. */
struct entry {
    int64_t ready_ns;   /* when its prompt was computed, or is estimated to be */
    int64_t prefill_ns; /* prefill time by the estimate */
    uint32_t prefill, decode;
    int32_t n_tokens;
    uint32_t next; /* next free entry; 0: none */
    enum stage stage;
};

struct state {
    struct entry *of; /* [max_reqs + 1]; entry 0 is not used */
    uint32_t free, n_used;
};

struct part {
    int64_t queue_ns;        /* sum of the prefill times of requests without a first token */
    int64_t n_sent_tokens;   /* prompt tokens of requests that decode here, or will */
    int64_t n_decode_tokens; /* prompt tokens of requests that decode now */
};

/* The router's note for a request: its entry, 24 bits; the number of the replica that decodes it,
 * 32 bits; and whether K/V moves for its prompt. */
static uint64_t note_of(uint32_t entry, size_t decode, bool moves)
{
    return entry | (uint64_t)decode << 24 | (uint64_t)moves << 56;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct conductor *p = self;
    struct state *state = ifl_state(self);
    (void)limits;
    state->of = calloc((size_t)p->max_reqs + 1, sizeof *state->of);
    return state->of ? 0 : ifl_fail_nomem(error);
}

static void finish(void *self)
{
    free(((struct state *)ifl_state(self))->of);
}

/* ---- estimates ---- */

static int64_t prefill_ns(const struct conductor *p, int32_t n, int32_t cached)
{
    const double squares = (double)n * n - (double)cached * cached;
    return (int64_t)(1e9 * (p->prefill_token_s * (n - cached) + p->prefill_square_s * squares));
}

static int64_t step_ns(const struct conductor *p, int64_t n_tokens)
{
    return p->decode_step_ns + (int64_t)(1e9 * p->decode_token_s * (double)n_tokens);
}

static int32_t best_match(const struct ifl_fleet *fleet)
{
    int32_t best = 0;
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++)
        best = ifl_max(best, ifl_cached_tokens(fleet, ifl_nth(fleet, IFL_PREFILLS, k)));
    return best;
}

static bool moves_there(const struct conductor *p, int32_t own, int32_t best)
{
    return best > own && best >= p->balancing * own;
}

static int64_t work_ns(const struct conductor *p, int32_t n, int32_t own, int32_t best, bool moves)
{
    return moves ? (int64_t)(1e9 * p->transfer_token_s * (best - own)) + prefill_ns(p, n, best)
                 : prefill_ns(p, n, own);
}

/* Tokens of the requests that decode at the replica, or will at that time. */
static int64_t tokens_then(const struct conductor *p, size_t replica, int64_t at_ns)
{
    const struct state *state = ifl_state(p);
    int64_t n = 0;
    for (uint32_t i = 1; i <= state->n_used; i++) {
        const struct entry *of = &state->of[i];
        if (of->stage != IS_FREE && of->decode == replica && of->ready_ns <= at_ns &&
            at_ns - of->ready_ns < p->decode_ns)
            n += of->n_tokens;
    }
    return n;
}

static const char *why_reject(const struct conductor *p, const struct ifl_fleet *fleet,
                              size_t decode, int64_t ttft_ns)
{
    const struct part *part = ifl_at(p, decode);
    if (p->reject == REJECT_NONE)
        return NULL;
    if (ttft_ns > p->ttft_ns)
        return "its first token would be late";
    const int64_t n_tokens = p->reject == REJECT_EARLY
                                 ? part->n_decode_tokens
                                 : tokens_then(p, decode, fleet->now_ns + ttft_ns);
    return step_ns(p, n_tokens + fleet->request->n_prompt) > p->tbt_ns ? "its steps would be late"
                                                                       : NULL;
}

/* ---- picking ---- */

static size_t decode_of(const struct conductor *p, const struct ifl_fleet *fleet)
{
    size_t to = ifl_nth(fleet, IFL_DECODES, 0);
    for (size_t k = 1; k < ifl_up(fleet, IFL_DECODES); k++) {
        const size_t i = ifl_nth(fleet, IFL_DECODES, k);
        const struct part *part = ifl_at(p, i), *least = ifl_at(p, to);
        to = part->n_sent_tokens < least->n_sent_tokens ? i : to;
    }
    return to;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct conductor *p = self;
    const struct state *state = ifl_state(self);
    const int32_t n = fleet->request->n_prompt, best = best_match(fleet);
    int64_t ttft_ns = INT64_MAX;
    size_t prefill = fleet->n;
    bool moves = false;
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        const int32_t own = ifl_cached_tokens(fleet, i);
        const bool then_moves = moves_there(p, own, best);
        const int64_t takes_ns =
            ((const struct part *)ifl_at(p, i))->queue_ns + work_ns(p, n, own, best, then_moves);
        if (takes_ns >= ttft_ns)
            continue;
        ttft_ns = takes_ns;
        prefill = i;
        moves = then_moves;
    }
    const size_t decode = decode_of(p, fleet);
    const char *why = why_reject(p, fleet, decode, ttft_ns);
    if (why)
        return ifl_shed(why);
    const uint32_t unused = state->n_used < (uint32_t)p->max_reqs ? state->n_used + 1 : 0;
    *fleet->note = note_of(state->free ? state->free : unused, decode, moves);
    return ifl_send_pair(prefill, decode);
}

/* ---- hooks ---- */

static struct entry *entry_of(void *self, const struct ifl_fleet *fleet)
{
    struct state *state = ifl_state(self);
    return &state->of[*fleet->note & 0xffffff];
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct conductor *p = self;
    struct state *state = ifl_state(self);
    struct part *part = ifl_at(self, replica);
    struct entry *of = entry_of(self, fleet);
    const int32_t n = fleet->request->n_prompt;
    const uint32_t decode = (uint32_t)(*fleet->note >> 24);
    if (of == state->of)
        return;
    if (of == &state->of[state->free])
        state->free = of->next;
    else
        state->n_used++;
    *of = (struct entry){.prefill = (uint32_t)replica,
                         .decode = decode,
                         .n_tokens = n,
                         .stage = IS_QUEUED,
                         .prefill_ns = work_ns(p, n, ifl_cached_tokens(fleet, replica),
                                               best_match(fleet), *fleet->note >> 56)};
    part->queue_ns += of->prefill_ns;
    of->ready_ns = fleet->now_ns + part->queue_ns;
    ((struct part *)ifl_at(self, decode))->n_sent_tokens += n;
}

/* Called when the prompt is computed, or will never be. */
static void end_prefill(void *self, const struct entry *of)
{
    ((struct part *)ifl_at(self, of->prefill))->queue_ns -= of->prefill_ns;
}

static void on_first_token(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct state *state = ifl_state(self);
    struct entry *of = entry_of(self, fleet);
    if (of == state->of || of->stage != IS_QUEUED)
        return;
    (void)replica;
    end_prefill(self, of);
    of->stage = DECODES;
    of->ready_ns = fleet->now_ns;
    ((struct part *)ifl_at(self, of->decode))->n_decode_tokens += of->n_tokens;
}

static void on_end(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct state *state = ifl_state(self);
    struct entry *of = entry_of(self, fleet);
    (void)replica;
    if (of == state->of)
        return;
    struct part *decode = ifl_at(self, of->decode);
    if (of->stage == IS_QUEUED)
        end_prefill(self, of);
    else
        decode->n_decode_tokens -= of->n_tokens;
    decode->n_sent_tokens -= of->n_tokens;
    *of = (struct entry){.stage = IS_FREE, .next = state->free};
    state->free = (uint32_t)(of - state->of);
}

static const struct ifl_route_ops ops = {
    .pick = pick, .on_sent = on_sent, .on_first_token = on_first_token, .on_end = on_end};

const struct ifl_policy policy_route_conductor = {
    .kind = IFL_ROUTE,
    .name = "conductor",
    .doc = "prefill: earliest first token, by caches and queues; decode: fewest tokens (Mooncake)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct conductor),
    .state_bytes = sizeof(struct state),
    .replica_bytes = sizeof(struct part),
    .init = init,
    .finish = finish,
    .sends_pairs = true,
    .ops.route = &ops,
};
