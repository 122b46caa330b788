/* A trie of all prompts that were sent, as in the prefix-aware router of vLLM's production stack
 * (src/vllm_router/routers/routing_logic.py and prefix/hashtrie.py, commit a6c01db, 2026-08): a
 * draw from the replicas that were sent the longest beginning of the prompt, in chunks. If it is
 * shorter than min_match_tokens, the replica with the lowest rate of requests. The source keeps all
 * prompts; here a replica has at most max_chunks chunks, and the one used longest ago is dropped
 * first.
 *
 * The source cuts texts into chunks of 128 characters; here a chunk has chunk_tokens tokens, 32 by
 * default. The incomplete chunk at the end of a prompt is one of its own, and its match counts as
 * chunk_tokens. A pick looks at each replica, and for each matched chunk at each replica that has
 * it. */
#include "inflight/policy.h"

#include "longest_match.h"
#include "rates.h"

struct trie {
    int32_t chunk_tokens, min_match_tokens, max_chunks, max_rated_reqs;
    int64_t window_ns;
};

static const struct ifl_param params[] = {
    {"chunk_tokens", IFL_INT, offsetof(struct trie, chunk_tokens), 32, 1, 1 << 20, NULL, "tokens",
     "chunk size for matching prompts"},
    {"min_match_tokens", IFL_INT, offsetof(struct trie, min_match_tokens), 0, 0, 1 << 30, NULL,
     "tokens", "shorter matches are ignored; the last chunk of a prompt counts as a whole one"},
    {"max_chunks", IFL_INT, offsetof(struct trie, max_chunks), 1 << 16, 1, 1 << 24, NULL, "chunks",
     "most chunks remembered per replica"},
    {"window_s", IFL_TIME, offsetof(struct trie, window_ns), 60, 1e-3, 1e9, NULL, "s",
     "time over which a replica's request rate is counted"},
    {"max_rated_reqs", IFL_INT, offsetof(struct trie, max_rated_reqs), 1 << 20, 1, 1 << 28, NULL,
     "requests", "most requests that count for rates, the latest ones"},
};

struct state {
    struct holders trie;
    struct rates rates;
};

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct trie *p = self;
    struct state *state = ifl_state(self);
    const size_t n = ifl_n_replicas(self);
    (void)limits;
    const int rc = rates_create(&state->rates, n, (size_t)p->max_rated_reqs, p->window_ns, error);
    return rc < 0
               ? rc
               : holders_create(&state->trie, n, p->max_chunks, "cluster.router.max_chunks", error);
}

static void finish(void *self)
{
    struct state *state = ifl_state(self);
    holders_destroy(&state->trie);
    rates_destroy(&state->rates);
}

/* Draws one of the replicas that match so many chunks, with one random number. */
static size_t draw_from(const struct trie *p, const struct ifl_fleet *fleet, int32_t most)
{
    const size_t n = ifl_up(fleet, IFL_PREFILLS);
    uint64_t n_equal = 0;
    for (size_t k = 0; k < n; k++)
        n_equal += match_at(p, ifl_nth(fleet, IFL_PREFILLS, k))->n_matched == most;
    ifl_require(n_equal > 0);
    uint64_t which = ifl_fleet_draw(fleet, 0) % n_equal;
    size_t i = 0;
    for (size_t k = 0; k < n; k++) {
        i = ifl_nth(fleet, IFL_PREFILLS, k);
        if (match_at(p, i)->n_matched == most && which-- == 0)
            break;
    }
    return i;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct trie *p = self;
    struct state *state = ifl_state(self);
    const int32_t n_matched = longest_match(
        self, fleet, &state->trie, prompt_blocks(fleet->request, p->chunk_tokens, 0, true));
    if ((int64_t)n_matched * p->chunk_tokens >= p->min_match_tokens)
        return ifl_send(draw_from(p, fleet, n_matched));
    rates_slide(&state->rates, fleet->now_ns);
    return ifl_send(rates_lowest(&state->rates, fleet));
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct trie *p = self;
    struct state *state = ifl_state(self);
    struct prompt_blocks chunks = prompt_blocks(fleet->request, p->chunk_tokens, 0, true);
    rates_note(&state->rates, replica, 1, fleet->now_ns);
    while (prompt_blocks_next(&chunks))
        holders_use(&state->trie, chunks.key, replica, (uint32_t)p->max_chunks);
}

static const struct ifl_route_ops ops = {.pick = pick, .on_sent = on_sent};

const struct ifl_policy policy_route_prefix_trie = {
    .kind = IFL_ROUTE,
    .name = "prefix-trie",
    .doc = "one of the replicas with the longest match of sent prompts, whatever its load",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct trie),
    .state_bytes = sizeof(struct state),
    .replica_bytes = sizeof(struct match_part),
    .init = init,
    .finish = finish,
    .ops.route = &ops,
};
