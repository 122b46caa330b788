/* Weighted scores: each scorer gives each replica a number from 0 to 1; the replica with the
 * largest weighted sum takes the request; one of several equal replicas is drawn. The scorers and
 * the picker are those of llm-d's router, commit 520af47 (2026-05), pkg/epp/framework/plugins:
 * scheduling/scorer/ {queuedepth, kvcacheutilization, loadaware, runningrequests, activerequest,
 * tokenload, prefix, preciseprefixcache, nohitlru}, scheduling/picker/maxscore, and, for the
 * router's knowledge of prefixes and of its own requests,
 * requestcontrol/dataproducer/{approximateprefix, inflightload}.
 *
 *   queue    (most - waiting) / (most - least), reported; 1 if all are equal
 *   kv       1 - use of the pool, reported
 *   load     0.5 (1 - min(waiting, queue_cap) / queue_cap)
 *   running  as queue, of running requests
 *   active   (most - n) / most x busy_score of the router's own requests in flight; 1 for n at most
 *            idle_reqs
 *   tokens   1 - min(tokens, token_cap) / token_cap; a request counts its prompt and output_ratio
 *            times as many for its answer
 *   prefix   share of the prompt's blocks that the router's own index has there: lru_blocks a
 *            replica, of at most match_blocks of a prompt. It counts blocks up to the first that no
 *            replica has, even if a replica lacks one in between.
 *   precise  share that the prefix cache holds or, for guess_s, that was sent there
 *   cold     a prompt of which nothing is known anywhere goes where the last such one went
 *            longest ago: 1 to 0 by that order; else 0.5 for all
 *
 * Without cluster.news what is "reported" is exact. Costs a look at each replica and, for prefixes,
 * at each replica that holds a block of the prompt. */
#include <math.h>

#include "inflight/policy.h"

#include "holders.h"
#include "prompt_blocks.h"

struct scores {
    double queue, kv, load, running, active, tokens, prefix, precise, cold;
    int32_t block_tokens, match_blocks, lru_blocks, queue_cap, idle_reqs;
    double token_cap, busy_score, output_ratio;
    int64_t guess_ns;
};

#define WEIGHT(name, dflt, doc)                                                                    \
    {                                                                                              \
#name, IFL_REAL, offsetof(struct scores, name), dflt, 0, 1e6, NULL, "", "weight of " doc   \
    }

static const struct ifl_param params[] = {
    WEIGHT(queue, 2, "a short queue"),
    WEIGHT(kv, 2, "free K/V blocks"),
    WEIGHT(load, 0, "a queue far below queue_cap"),
    WEIGHT(running, 0, "few running requests"),
    WEIGHT(active, 0, "few requests of the router's own count"),
    WEIGHT(tokens, 0, "few tokens of the router's own count"),
    WEIGHT(prefix, 3, "matching blocks in the router's own prefix index"),
    WEIGHT(precise, 0, "blocks held by the replica's prefix cache"),
    WEIGHT(cold, 0, "turns among prompts of which no replica has blocks"),
    {"block_tokens", IFL_INT, offsetof(struct scores, block_tokens), 0, 0, 1 << 20, NULL, "tokens",
     "block size of the index; 0: that of the K/V pool"},
    {"match_blocks", IFL_INT, offsetof(struct scores, match_blocks), 256, 1, 1 << 20, NULL,
     "blocks", "most blocks of a prompt that are looked up and remembered"},
    {"lru_blocks", IFL_INT, offsetof(struct scores, lru_blocks), 31250, 0, 1 << 24, NULL, "blocks",
     "index size per replica; 0: that of its pool"},
    {"queue_cap", IFL_INT, offsetof(struct scores, queue_cap), 128, 1, 1 << 30, NULL, "requests",
     "queue length from which on the score load is 0"},
    {"idle_reqs", IFL_INT, offsetof(struct scores, idle_reqs), 0, 0, 1 << 30, NULL, "requests",
     "with at most this many requests the score active is 1"},
    {"busy_score", IFL_REAL, offsetof(struct scores, busy_score), 1, 0, 1, NULL, "",
     "highest score active with more requests"},
    {"token_cap", IFL_REAL, offsetof(struct scores, token_cap), 4194304, 1, 1e15, NULL, "tokens",
     "number from which on the score tokens is 0"},
    {"output_ratio", IFL_REAL, offsetof(struct scores, output_ratio), 1.5, 0, 1e6, NULL, "",
     "expected output tokens per prompt token"},
    {"guess_s", IFL_TIME, offsetof(struct scores, guess_ns), 2, 0, 1e9, NULL, "s",
     "precise: time for which sent prompts count as cached"},
};

struct state {
    struct holders index;
    int32_t block_tokens;
    uint32_t lru_blocks;
    size_t oldest_cold, newest_cold; /* 1 + replicas, by their last cold prompt; 0: none */
};

struct part {
    int64_t n_active, n_tokens; /* sent and not ended */
    bool had_cold;              /* the replica is in the list of replicas that had a cold prompt */
    size_t older, newer;        /* 1 + its neighbours in that list; 0: none */
    int32_t n_matched, place;   /* scratch of pick: no answer depends on what was there */
};

/* Range of a load over all replicas. */
struct range {
    int32_t least_waiting, most_waiting, least_running, most_running;
    int64_t most_active;
};

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct scores *p = self;
    struct state *state = ifl_state(self);
    state->block_tokens = p->block_tokens > 0 ? p->block_tokens : limits->block_tokens;
    state->lru_blocks = (uint32_t)(p->lru_blocks > 0 ? p->lru_blocks : limits->n_blocks);
    const bool remembers = p->prefix > 0 || p->precise > 0 || p->cold > 0;
    return remembers
               ? holders_create(&state->index, ifl_n_replicas(self), (int32_t)state->lru_blocks,
                                "cluster.router.lru_blocks", error)
               : 0;
}

static void finish(void *self)
{
    struct state *state = ifl_state(self);
    holders_destroy(&state->index);
}

/* Returns the blocks of a prompt; a prompt below one block has none. */
static struct prompt_blocks blocks_of(const struct scores *p, const struct ifl_request *r)
{
    const struct state *state = ifl_state(p);
    return prompt_blocks(r, state->block_tokens, p->match_blocks,
                         r->n_prompt >= state->block_tokens);
}

/* Counts the prompt's blocks at each replica. Returns true if no replica has any. */
static bool match(const struct scores *p, const struct ifl_fleet *fleet)
{
    const struct state *state = ifl_state(p);
    bool is_cold = true;
    for (size_t i = 0; i < fleet->n; i++)
        ((struct part *)ifl_at(p, i))->n_matched = 0;
    if (!state->index.of)
        return true;
    struct prompt_blocks blocks = blocks_of(p, fleet->request);
    while (prompt_blocks_next(&blocks)) {
        uint32_t pair = holders_latest(&state->index, blocks.key);
        if (!pair)
            break;
        for (; pair; pair = holders_before(&state->index, pair))
            ((struct part *)ifl_at(p, state->index.of[pair].replica))->n_matched++;
        is_cold = false;
    }
    return is_cold;
}

static double precise_share(const struct scores *p, const struct ifl_fleet *fleet, size_t replica)
{
    const struct state *state = ifl_state(p);
    struct prompt_blocks blocks =
        prompt_blocks(fleet->request, state->block_tokens, p->match_blocks, false);
    const int32_t n_cached = ifl_cached_tokens(fleet, replica);
    int32_t n = 0;
    while (prompt_blocks_next(&blocks)) {
        const uint32_t pair = holders_find(&state->index, blocks.key, replica);
        const bool guessed = pair && fleet->now_ns - state->index.of[pair].at < p->guess_ns;
        if (!guessed && (blocks.i + 1) * (int64_t)state->block_tokens > n_cached)
            break;
        n++;
    }
    return blocks.n > 0 ? (double)n / blocks.n : 0;
}

static struct range survey(const struct scores *p, const struct ifl_fleet *fleet)
{
    struct range range = {.least_waiting = INT32_MAX, .least_running = INT32_MAX};
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        const struct ifl_load *load = ifl_load_of(fleet, i);
        const struct part *part = ifl_at(p, i);
        range.least_waiting = ifl_min(range.least_waiting, load->n_waiting);
        range.most_waiting = ifl_max(range.most_waiting, load->n_waiting);
        range.least_running = ifl_min(range.least_running, load->n_running);
        range.most_running = ifl_max(range.most_running, load->n_running);
        range.most_active = part->n_active > range.most_active ? part->n_active : range.most_active;
    }
    return range;
}

static double below_most(int32_t n, int32_t least, int32_t most)
{
    return most == least ? 1 : (double)(most - n) / (most - least);
}

static double active_score(const struct scores *p, const struct part *part, int64_t most)
{
    if (part->n_active <= p->idle_reqs)
        return 1;
    return (double)(most - part->n_active) / (double)most * p->busy_score;
}

static double token_score(const struct scores *p, const struct part *part)
{
    const double tokens = (double)part->n_tokens;
    return tokens <= 0 ? 1 : 1 - (tokens < p->token_cap ? tokens : p->token_cap) / p->token_cap;
}

enum { NO_PLACE = -1, LATER = -2 };

/* Sets the places of the replicas for a cold prompt: first those that never had one, by number,
 * then the others, the longest ago first. */
static void place_all(const struct scores *p, const struct ifl_fleet *fleet)
{
    const struct state *state = ifl_state(p);
    int32_t place = 0;
    for (size_t i = 0; i < fleet->n; i++)
        ((struct part *)ifl_at(p, i))->place = NO_PLACE;
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        struct part *part = ifl_at(p, ifl_nth(fleet, IFL_PREFILLS, k));
        part->place = part->had_cold ? LATER : place++;
    }
    for (size_t next = state->oldest_cold; next > 0;) {
        struct part *part = ifl_at(p, next - 1);
        part->place = part->place == LATER ? place++ : part->place;
        next = part->newer;
    }
}

static double cold_score(const struct ifl_fleet *fleet, const struct part *part)
{
    const size_t n = ifl_up(fleet, IFL_PREFILLS);
    return n == 1 ? 1 : 1 - (double)part->place / (double)(n - 1);
}

/* Terms are added in the order of the parameters, so that equal replicas have equal sums. */
static double sum_of(const struct scores *p, const struct ifl_fleet *fleet, size_t replica,
                     const struct range *range, bool is_cold)
{
    const struct ifl_load *load = ifl_load_of(fleet, replica);
    const struct part *part = ifl_at(p, replica);
    const double cap = p->queue_cap;
    double sum = p->queue * below_most(load->n_waiting, range->least_waiting, range->most_waiting);
    sum += p->kv * ((double)load->n_free_blocks / load->limits->n_blocks);
    sum += p->load * (0.5 * (1 - (load->n_waiting < cap ? load->n_waiting : cap) / cap));
    sum += p->running * below_most(load->n_running, range->least_running, range->most_running);
    sum += p->active * active_score(p, part, range->most_active);
    sum += p->tokens * token_score(p, part);
    if (p->prefix > 0 && blocks_of(p, fleet->request).n > 0)
        sum += p->prefix * ((double)part->n_matched / blocks_of(p, fleet->request).n);
    if (p->precise > 0)
        sum += p->precise * precise_share(p, fleet, replica);
    if (p->cold > 0)
        sum += p->cold * (is_cold ? cold_score(fleet, part) : 0.5);
    return sum;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct scores *p = self;
    const bool is_cold = match(p, fleet);
    const struct range range = survey(p, fleet);
    if (is_cold && p->cold > 0)
        place_all(p, fleet);
    double best = -1;
    size_t to = 0;
    uint32_t n_best = 0;
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        const double sum = sum_of(p, fleet, i, &range, is_cold);
        n_best = sum > best ? 0 : n_best;
        if (sum < best)
            continue;
        /* The n-th of equals takes the place of the one kept with probability 1/n. */
        if (n_best++ == 0 || ifl_fleet_draw(fleet, n_best) % n_best == 0)
            to = i;
        best = sum;
    }
    *fleet->note = is_cold;
    return ifl_send(to);
}

static int64_t tokens_of(const struct scores *p, const struct ifl_request *r)
{
    return r->n_prompt + llround(r->n_prompt * p->output_ratio);
}

/* Moves the replica to the end of the list of replicas with cold prompts. */
static void note_cold(struct state *state, void *self, size_t replica)
{
    struct part *part = ifl_at(self, replica);
    if (part->had_cold) {
        *(part->older ? &((struct part *)ifl_at(self, part->older - 1))->newer
                      : &state->oldest_cold) = part->newer;
        *(part->newer ? &((struct part *)ifl_at(self, part->newer - 1))->older
                      : &state->newest_cold) = part->older;
    }
    *(state->newest_cold ? &((struct part *)ifl_at(self, state->newest_cold - 1))->newer
                         : &state->oldest_cold) = replica + 1;
    part->older = state->newest_cold;
    part->newer = 0;
    part->had_cold = true;
    state->newest_cold = replica + 1;
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct scores *p = self;
    struct state *state = ifl_state(self);
    struct part *part = ifl_at(self, replica);
    part->n_active++;
    part->n_tokens += tokens_of(p, fleet->request);
    if (*fleet->note)
        note_cold(state, self, replica);
    if (!state->index.of)
        return;
    struct prompt_blocks blocks = blocks_of(p, fleet->request);
    while (prompt_blocks_next(&blocks))
        state->index.of[holders_use(&state->index, blocks.key, replica, state->lru_blocks)].at =
            fleet->now_ns;
}

static void on_end(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct part *part = ifl_at(self, replica);
    part->n_active--;
    part->n_tokens -= tokens_of(self, fleet->request);
}

static const struct ifl_route_ops ops = {.pick = pick, .on_sent = on_sent, .on_end = on_end};

const struct ifl_policy policy_route_scores = {
    .kind = IFL_ROUTE,
    .name = "scores",
    .doc = "largest weighted sum of scores: queue, K/V, own requests, own prefix index",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct scores),
    .state_bytes = sizeof(struct state),
    .replica_bytes = sizeof(struct part),
    .init = init,
    .finish = finish,
    .ops.route = &ops,
};
