/* Splitwise's prompt, token and mixed pools (ISCA 2024, section 4.4; splitwise-sim 8f99e7d,
 * scheduler.py, MixedPoolScheduler). Both replicas of a request are chosen when it arrives:
 *
 *   prompt  the replica of the prompt pool with the fewest tokens to come, else of the mixed pool.
 *           A replica is passed over if requests wait there and its tokens with this prompt exceed
 *           long_queue_tokens
 *
 *   rest    the replica of the token pool with the least memory promised, else of the mixed pool. A
 *           replica is passed over if this memory and the request would fill it
 *
 * If both pools are passed over, a replica of the other kind joins the mixed pool and takes the
 * part: for the prompt the token replica with the fewest tokens to come, for the rest the prompt
 * replica with the least memory promised. If there is no such replica, the replica with the fewest
 * tokens to come takes the whole request. Pools without replicas of both roles do not mix. A mixed
 * replica returns to the end of its own pool when it has nothing left to do.
 *
 * Tokens to come: those of prompts that are not done, and one for each request that decodes or will
 * decode there. Memory promised: a prompt and a token until the prompt is done; where the request
 * decodes, also its answer, of the predicted length, until its end. In splitwise-sim memory stays
 * promised until K/V has moved, and only then the request arrives at its token replica; here both
 * happen when the prompt ends. Of equal replicas the first of the pool is taken. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct mixed_pools {
    int32_t prompt_pools, long_queue_tokens;
};

static const struct ifl_param params[] = {
    {"prompt_pools", IFL_INT, offsetof(struct mixed_pools, prompt_pools), 1, 1, 1 << 16, NULL,
     "pools", "the first pools of cluster.pools are for prompts, the others for tokens"},
    {"long_queue_tokens", IFL_INT, offsetof(struct mixed_pools, long_queue_tokens), 8192, 0,
     1 << 30, NULL, "tokens",
     "with more tokens, a replica with waiting requests takes no further prompt "
     "(prompt_max_pending_batch_tokens)"},
};

/* A replica's state. Zeroed at the start: each replica is in its own pool, in order of number. */
struct part {
    int64_t n_tokens, n_memory_tokens;
    int64_t n_tasks; /* prompts that are not done, and requests that decode here */
    int64_t place;   /* place in its pool, behind replicas with a lower place */
    bool is_mixed;
};

struct state {
    int64_t n_moves; /* moves between pools so far */
};

enum pool { OF_PROMPTS, OF_TOKENS, OF_MIXED };
enum by { BY_TOKENS, BY_MEMORY };

/* The content of the router's note for a request: 20 bits for each of three replicas. A replica
 * that joins the mixed pool is stored as 1 + its number; 0: none. The highest bit is set when the
 * prompt is computed. */
struct note {
    size_t prefill, decode;
    size_t taken; /* replica that joins the mixed pool without a part of the request */
    bool takes_prefill, takes_decode;
};

static const uint64_t DONE = UINT64_C(1) << 63;

static uint64_t pack(const struct note *note)
{
    return note->prefill | (uint64_t)note->decode << 20 | (uint64_t)note->taken << 40 |
           (uint64_t)note->takes_prefill << 60 | (uint64_t)note->takes_decode << 61;
}

static struct note unpack(uint64_t word)
{
    return (struct note){word & 0xfffff, word >> 20 & 0xfffff, word >> 40 & 0xfffff, word >> 60 & 1,
                         word >> 61 & 1};
}

/* ---- picking ---- */

static bool is_of_prompts(const struct mixed_pools *p, const struct ifl_fleet *fleet, size_t i)
{
    return ifl_load_of(fleet, i)->pool < (uint32_t)p->prompt_pools;
}

static enum pool pool_of(const struct mixed_pools *p, const struct ifl_fleet *fleet, size_t i)
{
    const struct part *part = ifl_at(p, i);
    return part->is_mixed ? OF_MIXED : is_of_prompts(p, fleet, i) ? OF_PROMPTS : OF_TOKENS;
}

static bool is_better(const struct part *a, const struct part *b, enum by by)
{
    const int64_t more =
        by == BY_TOKENS ? a->n_tokens - b->n_tokens : a->n_memory_tokens - b->n_memory_tokens;
    return more < 0 || (more == 0 && a->place < b->place);
}

/* fleet->n: the pool is empty. */
static size_t best_with(const struct mixed_pools *p, const struct ifl_fleet *fleet, enum pool pool,
                        enum by by, unsigned role)
{
    size_t best = fleet->n;
    for (size_t k = 0; k < ifl_up(fleet, role); k++) {
        const size_t i = ifl_nth(fleet, role, k);
        if (pool_of(p, fleet, i) == pool &&
            (best == fleet->n || is_better(ifl_at(p, i), ifl_at(p, best), by)))
            best = i;
    }
    return best;
}

static size_t best_of(const struct mixed_pools *p, const struct ifl_fleet *fleet, enum pool pool,
                      enum by by)
{
    return best_with(p, fleet, pool, by, by == BY_TOKENS ? IFL_PREFILLS : IFL_DECODES);
}

static bool is_queue_long(const struct mixed_pools *p, const struct ifl_fleet *fleet, size_t i)
{
    const struct part *part = ifl_at(p, i);
    return ifl_load_of(fleet, i)->n_waiting > 0 &&
           part->n_tokens + fleet->request->n_prompt > p->long_queue_tokens;
}

static int32_t answer_tokens(const struct ifl_request *r)
{
    return r->n_predicted >= 0 ? r->n_predicted : r->n_max_new;
}

static int64_t memory_tokens(const struct ifl_request *r)
{
    return (int64_t)r->n_prompt + 1 + answer_tokens(r);
}

static bool is_full(const struct mixed_pools *p, const struct ifl_fleet *fleet, size_t i)
{
    const struct part *part = ifl_at(p, i);
    const struct ifl_limits *limits = ifl_load_of(fleet, i)->limits;
    return part->n_memory_tokens + memory_tokens(fleet->request) >=
           (int64_t)limits->n_blocks * limits->block_tokens;
}

/* Returns the best replica of the role's own pool, else of the mixed pool; fleet->n if all have too
 * much. */
static size_t own_or_mixed(const struct mixed_pools *p, const struct ifl_fleet *fleet,
                           enum pool own, enum by by)
{
    const enum pool order[] = {own, OF_MIXED};
    for (size_t k = 0; k < 2; k++) {
        const size_t best = best_of(p, fleet, order[k], by);
        if (best < fleet->n &&
            !(by == BY_TOKENS ? is_queue_long(p, fleet, best) : is_full(p, fleet, best)))
            return best;
    }
    return fleet->n;
}

/* Returns the replica that takes the whole request if a pool has no replica left to give. */
static size_t least_of_all(const struct mixed_pools *p, const struct ifl_fleet *fleet)
{
    static const enum pool order[] = {OF_PROMPTS, OF_MIXED, OF_TOKENS};
    size_t best = fleet->n;
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        const size_t i = best_with(p, fleet, order[k], BY_TOKENS, IFL_PREFILLS | IFL_DECODES);
        if (i < fleet->n &&
            (best == fleet->n || ((const struct part *)ifl_at(p, i))->n_tokens <
                                     ((const struct part *)ifl_at(p, best))->n_tokens))
            best = i;
    }
    return best;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct mixed_pools *p = self;
    struct note note = {.prefill = own_or_mixed(p, fleet, OF_PROMPTS, BY_TOKENS),
                        .decode = own_or_mixed(p, fleet, OF_TOKENS, BY_MEMORY)};
    note.takes_prefill = note.prefill == fleet->n;
    note.takes_decode = note.decode == fleet->n;
    if (note.takes_prefill)
        note.prefill = best_of(p, fleet, OF_TOKENS, BY_TOKENS);
    if (note.takes_decode)
        note.decode = best_of(p, fleet, OF_PROMPTS, BY_MEMORY);
    if (note.prefill == fleet->n || note.decode == fleet->n) {
        note.taken = note.takes_prefill && note.prefill < fleet->n ? note.prefill + 1
                     : note.takes_decode && note.decode < fleet->n ? note.decode + 1
                                                                   : 0;
        note.takes_prefill = note.takes_decode = false;
        note.prefill = note.decode = least_of_all(p, fleet);
        if (note.prefill == fleet->n) {
            note.prefill = ifl_least(fleet, IFL_PREFILLS);
            note.decode = ifl_least(fleet, IFL_DECODES);
        }
    }
    *fleet->note = pack(&note);
    return ifl_send_pair(note.prefill, note.decode);
}

/* ---- hooks ---- */

static void join_mixed(void *self, size_t replica)
{
    struct state *state = ifl_state(self);
    struct part *part = ifl_at(self, replica);
    part->is_mixed = true;
    part->place = ++state->n_moves;
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct ifl_request *r = fleet->request;
    const struct note note = unpack(*fleet->note);
    struct part *prefill = ifl_at(self, note.prefill), *decode = ifl_at(self, note.decode);
    (void)replica;
    if (note.takes_prefill)
        join_mixed(self, note.prefill);
    if (note.takes_decode)
        join_mixed(self, note.decode);
    if (note.taken > 0)
        join_mixed(self, note.taken - 1);
    prefill->n_tokens += r->n_prompt;
    prefill->n_tasks++;
    decode->n_tokens++;
    if (prefill != decode)
        prefill->n_memory_tokens += r->n_prompt + 1;
    decode->n_memory_tokens += memory_tokens(r);
}

/* A mixed replica with nothing left to do returns to its own pool. */
static void end_task(void *self, struct part *part)
{
    struct state *state = ifl_state(self);
    if (--part->n_tasks > 0 || !part->is_mixed)
        return;
    part->is_mixed = false;
    part->place = ++state->n_moves;
}

/* Called when the prompt of a request is computed, or will never be: from then on the request
 * counts as decoding. */
static void end_prompt(void *self, const struct ifl_fleet *fleet, const struct note *note)
{
    struct part *prefill = ifl_at(self, note->prefill), *decode = ifl_at(self, note->decode);
    const int32_t n_prompt = fleet->request->n_prompt;
    prefill->n_tokens -= n_prompt;
    if (prefill != decode)
        prefill->n_memory_tokens -= n_prompt + 1;
    decode->n_tasks++;
    end_task(self, prefill);
}

static void on_first_token(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct note note = unpack(*fleet->note);
    (void)replica;
    if (*fleet->note & DONE)
        return;
    *fleet->note |= DONE;
    end_prompt(self, fleet, &note);
}

static void on_end(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct note note = unpack(*fleet->note);
    struct part *decode = ifl_at(self, note.decode);
    (void)replica;
    if (!(*fleet->note & DONE))
        end_prompt(self, fleet, &note);
    decode->n_tokens--;
    decode->n_memory_tokens -= memory_tokens(fleet->request);
    end_task(self, decode);
}

static const struct ifl_route_ops ops = {
    .pick = pick, .on_sent = on_sent, .on_first_token = on_first_token, .on_end = on_end};

const struct ifl_policy policy_route_mixed_pools = {
    .kind = IFL_ROUTE,
    .name = "mixed-pools",
    .doc = "prompt and token replicas that join a mixed pool under load (Splitwise)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct mixed_pools),
    .state_bytes = sizeof(struct state),
    .replica_bytes = sizeof(struct part),
    .sends_pairs = true,
    .ops.route = &ops,
};
