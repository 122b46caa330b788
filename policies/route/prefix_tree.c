/* A tree of all prompts that were sent, as in SGLang's gateway (sgl-model-gateway,
 * policies/cache_aware.rs and tree.rs, commits 053b63f and 03744db of 2026, and the wheel
 * sglang-router 0.3.2 in tests/oracle):
 *
 *   - if the router's own counts of requests differ by more than balance_abs and by more than
 *     balance_rel times, the replica with the fewest;
 *   - else, if more than min_match_frac of the prompt is in the tree, the replica that was the
 *     first to get a prompt up to the end of the match, of those that the tree still has there;
 *   - else the replica with the fewest requests.
 *
 * vLLM's router (the wheel vllm-router 0.1.17 in tests/oracle) differs if the tree has several
 * replicas at the end of the match: it takes the one with the fewest requests.
 *
 * Of equal counts the first replica is taken. The tree is the gateway's own. With the first request
 * evict_every_s after the last eviction, the ends of prompts that a replica got longest ago are
 * dropped until it has at most max_tree_tokens. Between evictions a full tree loses its oldest
 * blocks. The source counts characters and drops a stretch between two forks at a time; here blocks
 * of block_tokens tokens are matched and dropped. A pick looks at each replica, and for each
 * matched block at each replica that has it. */
#include "inflight/policy.h"

#include "holders.h"
#include "prompt_blocks.h"

enum holder { HOLDER_FIRST, HOLDER_FEWEST };

struct tree {
    double min_match_frac, balance_rel;
    int32_t balance_abs, block_tokens, max_tree_tokens;
    int32_t holder; /* enum holder */
    int64_t evict_every_ns;
};

static const struct ifl_param params[] = {
    {"min_match_frac", IFL_REAL, offsetof(struct tree, min_match_frac), 0.3, 0, 1, NULL,
     "of the prompt", "its replica is chosen if the match is longer than this"},
    {"balance_abs", IFL_INT, offsetof(struct tree, balance_abs), 64, 0, 1 << 30, NULL, "requests",
     "out of balance: most and fewest requests differ by more than this, ..."},
    {"balance_rel", IFL_REAL, offsetof(struct tree, balance_rel), 1.5, 1, 1e6, NULL, "",
     "... and their ratio is above this"},
    {"block_tokens", IFL_INT, offsetof(struct tree, block_tokens), 16, 1, 1 << 20, NULL, "tokens",
     "block size for matching prompts"},
    {"max_tree_tokens", IFL_INT, offsetof(struct tree, max_tree_tokens), 1 << 20, 1, 1 << 30, NULL,
     "tokens", "tokens per replica that an eviction leaves; twice as many are kept at most"},
    {"evict_every_s", IFL_TIME, offsetof(struct tree, evict_every_ns), 120, 1e-3, 1e9, NULL, "s",
     "least time between evictions, which come with a request"},
    {"holder", IFL_CHOICE, offsetof(struct tree, holder), HOLDER_FIRST, 0, 0, "first|fewest", "",
     "among replicas with the whole match: the first to have held its last block, or the one with "
     "the fewest requests"},
};

/* The tree: a pair is a block of the tree that a replica has; its parent is the block before. `at`
 * is when a prompt last ended there or left the known tree, in sent requests; 0: never. */
struct state {
    struct holders tree;
    uint32_t *heap; /* [cap]: scratch of an eviction */
    uint64_t n_sent;
    int64_t next_eviction_ns;
    uint32_t most; /* most pairs of a replica after an eviction */
};

struct part {
    int64_t n_active; /* requests sent and not ended */
    bool is_up;       /* scratch of pick: no answer depends on what was there */
};

enum { SLACK = 2 }; /* between evictions a replica has at most so many times `most` pairs */

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct tree *p = self;
    struct state *state = ifl_state(self);
    const int32_t most = ifl_max(1, p->max_tree_tokens / p->block_tokens);
    (void)limits;
    state->most = (uint32_t)most;
    state->next_eviction_ns = p->evict_every_ns;
    const int rc = holders_create(&state->tree, ifl_n_replicas(self), SLACK * most,
                                  "cluster.router.max_tree_tokens", error);
    if (rc < 0)
        return rc;
    state->heap = calloc((size_t)SLACK * state->most, sizeof *state->heap);
    return state->heap ? 0 : ifl_fail_nomem(error);
}

static void finish(void *self)
{
    struct state *state = ifl_state(self);
    holders_destroy(&state->tree);
    free(state->heap);
}

/* ---- picking ---- */

struct extremes {
    size_t least;
    int64_t fewest, most; /* requests */
};

static struct extremes survey(const void *self, const struct ifl_fleet *fleet)
{
    struct extremes found = {.fewest = INT64_MAX};
    for (size_t i = 0; i < fleet->n; i++)
        ((struct part *)ifl_at(self, i))->is_up = false;
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        struct part *part = ifl_at(self, i);
        const int64_t n = part->n_active;
        part->is_up = true;
        if (n < found.fewest)
            found = (struct extremes){i, n, found.most};
        found.most = n > found.most ? n : found.most;
    }
    return found;
}

/* True if a request goes to replica a rather than to b, of which a has had the block longer. */
static bool is_better(const struct tree *p, uint32_t a, uint32_t b)
{
    const int64_t n_a = ((const struct part *)ifl_at(p, a))->n_active,
                  n_b = ((const struct part *)ifl_at(p, b))->n_active;
    return p->holder == HOLDER_FIRST || n_a < n_b || (n_a == n_b && a < b);
}

/* Returns the pair of the replica that would get the request, among those that have the block and
 * may take the request; 0: none. */
static uint32_t best_holder(const struct tree *p, uint64_t key)
{
    const struct state *state = ifl_state(p);
    const struct holders *tree = &state->tree;
    uint32_t best = 0;
    for (uint32_t pair = holders_latest(tree, key); pair; pair = holders_before(tree, pair)) {
        const uint32_t replica = tree->of[pair].replica;
        if (((const struct part *)ifl_at(p, replica))->is_up &&
            (!best || is_better(p, replica, tree->of[best].replica)))
            best = pair;
    }
    return best;
}

/* Returns the replica at the end of the match; *n_tokens is the length of the match. */
static size_t follow(const struct tree *p, const struct ifl_fleet *fleet, int64_t *n_tokens)
{
    const struct state *state = ifl_state(p);
    struct prompt_blocks blocks = prompt_blocks(fleet->request, p->block_tokens, 0, true);
    uint32_t pair, end = 0;
    *n_tokens = 0;
    while (prompt_blocks_next(&blocks) && (pair = best_holder(p, blocks.key)) != 0) {
        end = pair;
        *n_tokens += p->block_tokens;
    }
    *n_tokens = ifl_min(*n_tokens, (int64_t)fleet->request->n_prompt);
    return state->tree.of[end].replica;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct tree *p = self;
    const struct extremes found = survey(self, fleet);
    int64_t n_tokens;
    if (found.most - found.fewest > p->balance_abs &&
        (double)found.most > p->balance_rel * (double)found.fewest)
        return ifl_send(found.least);
    const size_t there = follow(p, fleet, &n_tokens);
    return ifl_send((double)n_tokens / fleet->request->n_prompt > p->min_match_frac ? there
                                                                                    : found.least);
}

/* ---- evicting ---- */

static bool is_before(const struct holders *tree, uint32_t a, uint32_t b)
{
    return tree->of[a].at != tree->of[b].at ? tree->of[a].at < tree->of[b].at : a < b;
}

static void sift_up(const struct holders *tree, uint32_t *heap, size_t i)
{
    for (; i > 0 && is_before(tree, heap[i], heap[(i - 1) / 2]); i = (i - 1) / 2) {
        const uint32_t up = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = heap[i];
        heap[i] = up;
    }
}

static void sift_down(const struct holders *tree, uint32_t *heap, size_t n)
{
    for (size_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_before(tree, heap[child + 1], heap[child]))
            child++;
        if (!is_before(tree, heap[child], heap[i]))
            return;
        const uint32_t down = heap[i];
        heap[i] = heap[child];
        heap[child] = down;
    }
}

/* Drops the ends of prompts that were added or matched longest ago until the replica has at most
 * `most` blocks. */
static void evict(struct state *state, size_t replica, uint32_t most)
{
    struct holders *tree = &state->tree;
    size_t n = 0;
    if (tree->replicas[replica].n <= most)
        return;
    for (uint32_t pair = tree->replicas[replica].oldest; pair; pair = tree->of[pair].newer)
        if (tree->of[pair].n_children == 0) {
            state->heap[n] = pair;
            sift_up(tree, state->heap, n++);
        }
    while (tree->replicas[replica].n > most) {
        const uint32_t end = state->heap[0], parent = tree->of[end].parent;
        holders_remove(tree, end);
        state->heap[0] = state->heap[--n];
        sift_down(tree, state->heap, n);
        if (parent && --tree->of[parent].n_children == 0) {
            state->heap[n] = parent;
            sift_up(tree, state->heap, n++);
        }
    }
}

/* ---- hooks ---- */

/* Adds the prompt to the tree for that replica. If the tree is full, the replica's part is made
 * smaller first. */
static void insert(const struct tree *p, const struct ifl_fleet *fleet, size_t replica)
{
    struct state *state = ifl_state(p);
    struct prompt_blocks blocks = prompt_blocks(fleet->request, p->block_tokens, 0, true);
    const uint32_t room = SLACK * state->most;
    uint32_t before = 0;
    bool is_new = false;
    state->n_sent++;
    if ((uint32_t)blocks.n > room)
        return;
    if (state->tree.replicas[replica].n + (uint32_t)blocks.n > room)
        evict(state, replica, room - (uint32_t)blocks.n);
    while (prompt_blocks_next(&blocks)) {
        uint32_t pair = holders_find(&state->tree, blocks.key, replica);
        /* Blocks that no replica had form one stretch, which this prompt adds. */
        is_new = is_new || !holders_latest(&state->tree, blocks.key);
        if (!pair) {
            pair = holders_add(&state->tree, blocks.key, replica);
            state->tree.of[pair].parent = before;
            state->tree.of[pair].at = is_new ? (int64_t)state->n_sent : 0;
            state->tree.of[before].n_children++;
        }
        before = pair;
    }
    state->tree.of[before].at = (int64_t)state->n_sent;
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct tree *p = self;
    struct state *state = ifl_state(self);
    if (fleet->now_ns >= state->next_eviction_ns) {
        for (size_t i = 0; i < fleet->n; i++)
            evict(state, i, state->most);
        state->next_eviction_ns = (fleet->now_ns / p->evict_every_ns + 1) * p->evict_every_ns;
    }
    insert(p, fleet, replica);
    ((struct part *)ifl_at(self, replica))->n_active++;
}

static void on_end(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    (void)fleet;
    ((struct part *)ifl_at(self, replica))->n_active--;
}

static const struct ifl_route_ops ops = {.pick = pick, .on_sent = on_sent, .on_end = on_end};

const struct ifl_policy policy_route_prefix_tree = {
    .kind = IFL_ROUTE,
    .name = "prefix-tree",
    .doc = "replica with the longest match in a tree of sent prompts, while the load is balanced",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct tree),
    .state_bytes = sizeof(struct state),
    .replica_bytes = sizeof(struct part),
    .init = init,
    .finish = finish,
    .ops.route = &ops,
};
