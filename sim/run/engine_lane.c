#include "run/engine_lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "run/engine_member.h"

enum { BLOCKS_AT_A_TIME = 32 };

/* ---- the memory of a tier ---- */

int engine_tier_create(struct engine_tier *tier, size_t n_places)
{
    const size_t n_chunks = n_places / ENGINE_TIER_CHUNK + 1;
    *tier = (struct engine_tier){calloc(n_chunks, sizeof(unsigned char *)), n_chunks};
    return tier->chunks ? 0 : IFL_E_NOMEM;
}

void engine_tier_destroy(struct engine_tier *tier)
{
    for (size_t i = 0; tier->chunks && i < tier->n_chunks; i++)
        free(tier->chunks[i]);
    free(tier->chunks);
    *tier = (struct engine_tier){0};
}

/* NULL without memory. Only the out lane takes any; the in lane reads what has been written. */
static unsigned char *place_at(struct engine_tier *tier, uint32_t place, size_t block_bytes)
{
    const size_t chunk = place / ENGINE_TIER_CHUNK;
    ifl_require(chunk < tier->n_chunks);
    if (!tier->chunks[chunk])
        tier->chunks[chunk] = malloc(ENGINE_TIER_CHUNK * block_bytes);
    unsigned char *bytes = tier->chunks[chunk];
    return bytes ? bytes + place % ENGINE_TIER_CHUNK * block_bytes : NULL;
}

/* ---- copying ---- */

/* Several lanes may read one engine's blocks. */
static int send_blocks(struct engine_member *from, const uint32_t *blocks, size_t n, void *bytes,
                       struct ifl_error *error)
{
    pthread_mutex_lock(&from->sending);
    const struct guard_call *before = guard_enter(&from->sends);
    const int code = from->engine->send_blocks(from->self, blocks, n, bytes, error);
    guard_leave(before);
    pthread_mutex_unlock(&from->sending);
    return code;
}

static int receive_blocks(struct engine_member *to, const uint32_t *blocks, size_t n,
                          const void *bytes, struct ifl_error *error)
{
    const struct guard_call *before = guard_enter(&to->receives);
    const int code = to->engine->receive_blocks(to->self, blocks, n, bytes, error);
    guard_leave(before);
    return code;
}

/* Places of the tier that follow one another, in one chunk, up to n. */
static size_t stretch(const uint32_t *places, size_t n)
{
    size_t i = 1;
    while (i < n && places[i] == places[i - 1] + 1 && places[i] % ENGINE_TIER_CHUNK != 0)
        i++;
    return i;
}

static int copy_with_tier(struct engine_lane *lane, const uint32_t *blocks, const uint32_t *places,
                          size_t n, struct ifl_error *error)
{
    struct engine_member *of = lane->of;
    const size_t block_bytes = of->engine->block_bytes(of->self);
    int code = 0;
    for (size_t i = 0, run; i < n && code == 0; i += run) {
        unsigned char *bytes = place_at(&of->tier, places[i], block_bytes);
        run = stretch(places + i, n - i);
        if (!bytes)
            return ifl_fail_nomem(error);
        code = lane->goes_out ? send_blocks(of, blocks + i, run, bytes, error)
                              : receive_blocks(of, blocks + i, run, bytes, error);
    }
    return code;
}

static int copy_some(struct engine_lane *lane, const struct lane_move *move, size_t first, size_t n,
                     struct ifl_error *error)
{
    uint32_t from[BLOCKS_AT_A_TIME], to[BLOCKS_AT_A_TIME];
    for (size_t i = 0; i < n; i++) {
        from[i] = move->copies[first + i].from;
        to[i] = move->copies[first + i].to;
    }
    if (lane->goes_out)
        return copy_with_tier(lane, from, to, n, error);
    if (!move->from)
        return copy_with_tier(lane, to, from, n, error);
    const int code = send_blocks(move->from, from, n, lane->staging, error);
    return code < 0 ? code : receive_blocks(lane->of, to, n, lane->staging, error);
}

static int copy(struct engine_lane *lane, const struct lane_move *move, struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < move->n_copies && code == 0; i += BLOCKS_AT_A_TIME) {
        const size_t left = move->n_copies - i;
        code = copy_some(lane, move, i, ifl_min(left, (size_t)BLOCKS_AT_A_TIME), error);
    }
    return code;
}

/* ---- the thread ---- */

static struct lane_move *move_at(const struct engine_lane *lane, uint64_t i)
{
    return &lane->moves[i % lane->cap];
}

/* Blocks that come may be those of a prompt that gave way, and are still to be read. */
static bool writes_what_is_sent(const struct engine_lane *lane, const struct lane_move *move)
{
    const uint32_t *n_sends = lane->of->n_sends;
    for (size_t i = 0; n_sends && i < move->n_copies; i++)
        if (n_sends[move->copies[i].to] > 0)
            return true;
    return false;
}

static bool is_due(const struct engine_lane *lane)
{
    if (lane->n_ended == lane->n_submitted)
        return false;
    const struct lane_move *move = move_at(lane, lane->n_ended);
    return lane->goes_out ||
           (move->after <= lane->of->out.n_ended && !writes_what_is_sent(lane, move));
}

/* Blocks that move to another engine are to be read from now on, or no longer. */
static void count_sends(const struct engine_lane *lane, const struct lane_move *move, uint32_t by)
{
    for (size_t i = 0; move->from && !lane->goes_out && i < move->n_copies; i++)
        move->from->n_sends[move->copies[i].from] += by;
}

/* The ring may grow meanwhile; the copies of a move stay where they are. */
static void run_one(struct engine_lane *lane)
{
    struct engine_hub *hub = lane->of->hub;
    struct lane_move move = *move_at(lane, lane->n_ended);
    const bool in_vain = hub->has_failed;
    pthread_mutex_unlock(&hub->lock);
    move.start_ns = engine_hub_now(hub);
    move.code = in_vain ? ifl_fail(&move.error, IFL_E_DEVICE, "an earlier step or move has failed")
                        : copy(lane, &move, &move.error);
    pthread_mutex_lock(&hub->lock);
    move.end_ns = engine_hub_now(hub);
    hub->has_failed |= move.code < 0;
    count_sends(lane, &move, UINT32_MAX);
    *move_at(lane, lane->n_ended++) = move;
    engine_hub_tell(hub);
}

static void *serve(void *context)
{
    struct engine_lane *lane = context;
    struct engine_hub *hub = lane->of->hub;
    pthread_mutex_lock(&hub->lock);
    while (!hub->closing)
        if (is_due(lane))
            run_one(lane);
        else
            pthread_cond_wait(&hub->submitted, &hub->lock);
    pthread_mutex_unlock(&hub->lock);
    return NULL;
}

int engine_lane_open(struct engine_lane *lane, struct engine_member *of, bool goes_out,
                     struct ifl_error *error)
{
    const struct ifl_engine *engine = of->engine;
    *lane = (struct engine_lane){.of = of, .goes_out = goes_out};
    if (!engine->send_blocks || !engine->receive_blocks)
        return ifl_fail(error, IFL_E_INPUT,
                        "engine %s copies no blocks beside its steps, expected no K/V that moves "
                        "(pools with roles, serving.kv.tiers) with it",
                        engine->name);
    lane->staging = goes_out ? NULL : malloc(BLOCKS_AT_A_TIME * engine->block_bytes(of->self));
    if (!goes_out && !lane->staging)
        return ifl_fail_nomem(error);
    if (pthread_create(&lane->thread, NULL, serve, lane) != 0)
        return ifl_fail(error, IFL_E_NOMEM, "no thread can be started to move K/V");
    lane->has_thread = true;
    return 0;
}

void engine_lane_close(struct engine_lane *lane)
{
    if (lane->has_thread)
        pthread_join(lane->thread, NULL);
    for (size_t i = 0; i < lane->cap; i++)
        free(lane->moves[i].copies);
    free(lane->moves);
    free(lane->staging);
    *lane = (struct engine_lane){0};
}

/* ---- the loop's side ---- */

static int grow(struct engine_lane *lane)
{
    const size_t cap = lane->cap > 0 ? 2 * lane->cap : 16;
    struct lane_move *moves = calloc(cap, sizeof *moves);
    if (!moves)
        return IFL_E_NOMEM;
    for (uint64_t i = lane->n_taken; i < lane->n_submitted; i++)
        moves[i % cap] = *move_at(lane, i);
    free(lane->moves);
    lane->moves = moves;
    lane->cap = cap;
    return 0;
}

int engine_lane_submit(struct engine_lane *lane, struct engine_member *from,
                       const struct ifl_kv_move *move)
{
    if (lane->n_submitted - lane->n_taken == lane->cap && grow(lane) < 0)
        return IFL_E_NOMEM;
    struct lane_move *to = move_at(lane, lane->n_submitted);
    if (move->n_copies > to->cap_copies) {
        if (array_grow(&to->copies, 0, move->n_copies, sizeof *to->copies) < 0)
            return IFL_E_NOMEM;
        to->cap_copies = move->n_copies;
    }
    *to = (struct lane_move){.tag = move->tag,
                             .after = lane->of->out.n_submitted,
                             .from = from,
                             .copies = to->copies,
                             .n_copies = move->n_copies,
                             .cap_copies = to->cap_copies,
                             .sent_ns = engine_hub_now(lane->of->hub)};
    if (move->n_copies > 0)
        memcpy(to->copies, move->copies, move->n_copies * sizeof *to->copies);
    count_sends(lane, to, 1);
    lane->n_submitted++;
    pthread_cond_broadcast(&lane->of->hub->submitted);
    return 0;
}

const struct lane_move *engine_lane_first(const struct engine_lane *lane)
{
    return lane->n_taken < lane->n_ended ? move_at(lane, lane->n_taken) : NULL;
}
