/* The replica with the least cost in blocks, as Dynamo's K/V router counts
 * (lib/kv-router/src/scheduling/selector.rs and src/sequences, main branch of 2026, after 1.6):
 * blocks to compute before the first token, and blocks in use beside the request.
 *
 *     prefill_scale x max(0, (prefill tokens there + prompt) / block - credit x cached blocks)
 *       + blocks there with it
 *
 * The router keeps these counts itself. A request counts the tokens of its prompt that are not
 * cached until its first token, and the whole blocks of its prompt until its end; blocks that
 * requests share count once. The credit is multiplied by 1 / (1 + decay x excess), where the excess
 * is the replica's prefill tokens above the least of all replicas, over the size of this prompt, in
 * blocks. With a temperature the replica is drawn by a softmax of costs, scaled so that the range
 * from least to most is 1.
 *
 * With queue_tokens a request is held at the gateway while each replica that may have it has more
 * prefill tokens (scheduling/queue.rs; there 16 steps of them by default, router_queue_threshold).
 * cluster.gateway gives the order and the classes of held requests.
 *
 * Left out are credits for slower tiers and for a shared cache, and a cost of each request. Cached
 * blocks are known from events, without delay, or guessed: blocks that were sent to a replica count
 * as cached there for guess_s. Of equal costs the first replica is taken. A pick looks at each
 * replica, and at each replica that has a block of the prompt. */
#include <math.h>

#include "inflight/policy.h"

#include "holders.h"
#include "prompt_blocks.h"

enum known_by { BY_EVENTS, BY_GUESSES };

struct block_cost {
    double prefill_scale, credit, decay, temperature;
    int32_t cached, block_tokens, index_blocks, active_blocks, queue_tokens;
    int64_t guess_ns;
};

static const struct ifl_param params[] = {
    {"prefill_scale", IFL_REAL, offsetof(struct block_cost, prefill_scale), 1, 0, 1e6, NULL, "",
     "weight of a block to compute, relative to a block in use"},
    {"credit", IFL_REAL, offsetof(struct block_cost, credit), 1, 0, 1e6, NULL, "",
     "prefill blocks saved by a cached block"},
    {"decay", IFL_REAL, offsetof(struct block_cost, decay), 0, 0, 1e6, NULL, "",
     "how fast the credit falls with the prefill load of a replica"},
    {"temperature", IFL_REAL, offsetof(struct block_cost, temperature), 0, 0, 1e6, NULL, "",
     "temperature of the softmax draw by cost; 0: least cost"},
    {"cached", IFL_CHOICE, offsetof(struct block_cost, cached), BY_EVENTS, 0, 0, "events|guesses",
     "", "cached blocks are known, or guessed from requests sent"},
    {"guess_s", IFL_TIME, offsetof(struct block_cost, guess_ns), 120, 0, 1e9, NULL, "s",
     "lifetime of a guess"},
    {"block_tokens", IFL_INT, offsetof(struct block_cost, block_tokens), 0, 0, 1 << 20, NULL,
     "tokens", "block size of the router; 0: that of the K/V pool"},
    {"index_blocks", IFL_INT, offsetof(struct block_cost, index_blocks), 1 << 16, 1, 1 << 24, NULL,
     "blocks", "most guessed blocks per replica; the latest are kept"},
    {"active_blocks", IFL_INT, offsetof(struct block_cost, active_blocks), 1 << 16, 1, 1 << 24,
     NULL, "blocks",
     "most blocks in use that are identified per replica; further ones count as unshared"},
    {"queue_tokens", IFL_INT, offsetof(struct block_cost, queue_tokens), 0, 0, INT32_MAX, NULL,
     "tokens",
     "a request is held at the gateway while every replica has more prompt tokens to compute; 0: "
     "none is held"},
};

struct state {
    struct holders guesses; /* `at`: when the block was last sent to the replica */
    struct holders active;  /* `at`: requests that have the block */
    int32_t block_tokens;
};

struct part {
    int64_t prefill_tokens;
    int64_t n_untold_blocks; /* blocks of requests for which `active` had no room */
    double cost;             /* this field and the next two are scratch of `pick`, which sets them
                                before reading */
    int32_t n_guessed, n_shared;
};

/* The router's note for a request: twice the tokens that it is charged until its first token, plus
 * 1 if its blocks are not in `active`. */
enum { UNTOLD = 1 };

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct block_cost *p = self;
    struct state *state = ifl_state(self);
    state->block_tokens = p->block_tokens > 0 ? p->block_tokens : limits->block_tokens;
    if (p->cached == BY_GUESSES &&
        holders_create(&state->guesses, ifl_n_replicas(self), p->index_blocks,
                       "cluster.router.index_blocks", error) < 0)
        return error->code;
    return holders_create(&state->active, ifl_n_replicas(self), p->active_blocks,
                          "cluster.router.active_blocks", error);
}

static void finish(void *self)
{
    struct state *state = ifl_state(self);
    holders_destroy(&state->guesses);
    holders_destroy(&state->active);
}

static struct prompt_blocks blocks_of(const struct block_cost *p, const struct ifl_request *r)
{
    const struct state *state = ifl_state(p);
    return prompt_blocks(r, state->block_tokens, 0, false);
}

/* ---- picking ---- */

/* Counts the prompt's blocks at each replica: guessed ones from its start on, and active ones. */
static void match(const struct block_cost *p, const struct ifl_fleet *fleet)
{
    const struct state *state = ifl_state(p);
    const struct holders *guesses = &state->guesses, *active = &state->active;
    struct prompt_blocks blocks = blocks_of(p, fleet->request);
    for (size_t i = 0; i < fleet->n; i++) {
        struct part *part = ifl_at(p, i);
        part->n_guessed = part->n_shared = 0;
    }
    while (prompt_blocks_next(&blocks)) {
        uint32_t pair = holders_latest(active, blocks.key);
        for (; pair; pair = holders_before(active, pair))
            ((struct part *)ifl_at(p, active->of[pair].replica))->n_shared++;
        pair = guesses->of ? holders_latest(guesses, blocks.key) : 0;
        for (; pair; pair = holders_before(guesses, pair)) {
            struct part *part = ifl_at(p, guesses->of[pair].replica);
            part->n_guessed +=
                part->n_guessed == blocks.i && fleet->now_ns - guesses->of[pair].at < p->guess_ns;
        }
    }
}

static int64_t cached_blocks(const struct block_cost *p, const struct ifl_fleet *fleet,
                             size_t replica)
{
    const struct state *state = ifl_state(p);
    if (p->cached == BY_GUESSES)
        return ((const struct part *)ifl_at(p, replica))->n_guessed;
    return ifl_cached_tokens(fleet, replica) / state->block_tokens;
}

static int64_t least_prefill_tokens(const struct block_cost *p, const struct ifl_fleet *fleet)
{
    int64_t least = INT64_MAX;
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const struct part *part = ifl_at(p, ifl_nth(fleet, IFL_PREFILLS, k));
        least = ifl_min(least, part->prefill_tokens);
    }
    return least;
}

static double cost_of(const struct block_cost *p, const struct ifl_fleet *fleet, size_t replica,
                      int64_t least_tokens)
{
    const struct state *state = ifl_state(p);
    const struct part *part = ifl_at(p, replica);
    const struct ifl_request *r = fleet->request;
    const double block = state->block_tokens;
    const int64_t n_blocks = r->n_prompt / state->block_tokens;
    const int64_t request_blocks =
        (r->n_prompt + (int64_t)state->block_tokens - 1) / state->block_tokens;
    const double excess =
        (double)(part->prefill_tokens - least_tokens) / block / (double)request_blocks;
    const double credit = p->credit * (1 / (1 + p->decay * excess));
    const double prefill = (double)(part->prefill_tokens + r->n_prompt) / block -
                           credit * (double)cached_blocks(p, fleet, replica);
    const int64_t held =
        state->active.replicas[replica].n + part->n_untold_blocks + n_blocks - part->n_shared;
    return p->prefill_scale * (prefill > 0 ? prefill : 0) + (double)held;
}

/* Draws a replica by a softmax of the costs between least and most, with one random number. */
static size_t draw(const struct block_cost *p, const struct ifl_fleet *fleet, double least,
                   double most)
{
    const double scale = most > least ? 1 / ((most - least) * p->temperature) : 0;
    const size_t n = ifl_up(fleet, IFL_PREFILLS);
    double sum = 0, so_far = 0;
    size_t i = 0;
    for (size_t k = 0; k < n; k++) {
        const struct part *part = ifl_at(p, ifl_nth(fleet, IFL_PREFILLS, k));
        sum += exp(-(part->cost - least) * scale);
    }
    const double goal = ifl_uniform(ifl_fleet_draw(fleet, 0)) * sum;
    for (size_t k = 0; k < n; k++) {
        i = ifl_nth(fleet, IFL_PREFILLS, k);
        so_far += exp(-(((const struct part *)ifl_at(p, i))->cost - least) * scale);
        if (goal <= so_far)
            break;
    }
    return i;
}

static bool has_room(const struct block_cost *p, const struct ifl_fleet *fleet, size_t replica)
{
    const struct state *state = ifl_state(p);
    return (int64_t)state->active.replicas[replica].n + blocks_of(p, fleet->request).n <=
           p->active_blocks;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct block_cost *p = self;
    const struct state *state = ifl_state(self);
    const int64_t least_tokens = least_prefill_tokens(p, fleet);
    double least = INFINITY, most = -INFINITY;
    size_t to = 0;
    if (p->queue_tokens > 0 && least_tokens > p->queue_tokens)
        return ifl_hold_back();
    match(p, fleet);
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        struct part *part = ifl_at(self, i);
        part->cost = cost_of(p, fleet, i, least_tokens);
        to = part->cost < least ? i : to;
        least = fmin(least, part->cost);
        most = fmax(most, part->cost);
    }
    if (p->temperature > 0)
        to = draw(p, fleet, least, most);
    const int64_t n_cached = cached_blocks(p, fleet, to) * state->block_tokens;
    *fleet->note = 2 * (uint64_t)ifl_max(0, fleet->request->n_prompt - n_cached) +
                   (has_room(p, fleet, to) ? 0 : UNTOLD);
    return ifl_send(to);
}

/* ---- hooks ---- */

static void hold(const struct block_cost *p, const struct ifl_fleet *fleet, size_t replica)
{
    struct state *state = ifl_state(p);
    struct holders *active = &state->active;
    struct prompt_blocks blocks = blocks_of(p, fleet->request);
    while (prompt_blocks_next(&blocks)) {
        uint32_t pair = holders_find(active, blocks.key, replica);
        pair = pair ? pair : holders_add(active, blocks.key, replica);
        active->of[pair].at++;
    }
}

static void let_go(const struct block_cost *p, const struct ifl_fleet *fleet, size_t replica)
{
    struct state *state = ifl_state(p);
    struct holders *active = &state->active;
    struct prompt_blocks blocks = blocks_of(p, fleet->request);
    while (prompt_blocks_next(&blocks)) {
        const uint32_t pair = holders_find(active, blocks.key, replica);
        if (--active->of[pair].at == 0)
            holders_remove(active, pair);
    }
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct block_cost *p = self;
    struct state *state = ifl_state(self);
    struct part *part = ifl_at(self, replica);
    struct prompt_blocks blocks = blocks_of(p, fleet->request);
    part->prefill_tokens += (int64_t)(*fleet->note / 2);
    if (*fleet->note & UNTOLD)
        part->n_untold_blocks += blocks.n;
    else
        hold(p, fleet, replica);
    while (state->guesses.of && prompt_blocks_next(&blocks))
        state->guesses
            .of[holders_use(&state->guesses, blocks.key, replica, (uint32_t)p->index_blocks)]
            .at = fleet->now_ns;
}

static void on_first_token(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct part *part = ifl_at(self, replica);
    part->prefill_tokens -= (int64_t)(*fleet->note / 2);
    *fleet->note &= UNTOLD;
}

static void on_end(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct part *part = ifl_at(self, replica);
    on_first_token(self, fleet, replica);
    if (*fleet->note & UNTOLD)
        part->n_untold_blocks -= blocks_of(self, fleet->request).n;
    else
        let_go(self, fleet, replica);
}

static const struct ifl_route_ops ops = {
    .pick = pick, .on_sent = on_sent, .on_first_token = on_first_token, .on_end = on_end};

const struct ifl_policy policy_route_block_cost = {
    .kind = IFL_ROUTE,
    .name = "block-cost",
    .doc = "fewest blocks to compute (less cached ones) plus blocks in use, as the router counts",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct block_cost),
    .state_bytes = sizeof(struct state),
    .replica_bytes = sizeof(struct part),
    .init = init,
    .finish = finish,
    .ops.route = &ops,
};
