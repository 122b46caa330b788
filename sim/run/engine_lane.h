/* A lane: a thread that copies K/V beside the steps of an engine, one move after the other. An
 * engine has two lanes.
 *
 *   in    moves to the device of the engine, from other engines and from its tier. A move begins
 *         when all moves to the tier that were submitted before it have ended
 *   out   moves to the tier of the engine. A step that is submitted after a move begins when the
 *         move has ended
 *
 * Blocks that another engine's lane reads are read when that lane comes to their move. Steps that
 * only read these blocks run meanwhile. A step or a move that writes one of these blocks begins
 * when the block has been read.
 *
 * Between two engines bytes go through memory of the lane, some blocks at a time. */
#ifndef SIM_RUN_ENGINE_LANE_H
#define SIM_RUN_ENGINE_LANE_H

#include "inflight/engine.h"
#include "inflight/executor.h"

#include "run/engine_hub.h"

struct engine_member;

/* Host memory for the blocks of a tier, taken as its places are written. */
struct engine_tier {
    unsigned char **chunks; /* [n_chunks], each of ENGINE_TIER_CHUNK places; NULL: not allocated
                               yet */
    size_t n_chunks;
};

enum { ENGINE_TIER_CHUNK = 64 };

struct lane_move {
    uint64_t tag, after;        /* after: moves of the out lane that must have ended before this
                                   one begins */
    struct engine_member *from; /* source engine; NULL: the tier. In the out lane the engine
                                   itself */
    struct ifl_copy *copies;    /* [n_copies] */
    size_t n_copies, cap_copies;
    int64_t sent_ns, start_ns, end_ns;
    int code;
    struct ifl_error error;
};

struct engine_lane {
    struct engine_member *of;
    bool goes_out;
    bool has_thread;
    pthread_t thread;
    unsigned char *staging;
    /* under the lock */
    struct lane_move *moves; /* [cap], a ring */
    size_t cap;
    uint64_t n_submitted, n_ended, n_taken;
};

/* Starts the lane's thread. Returns 0, IFL_E_NOMEM, or IFL_E_INPUT if the engine cannot copy blocks
 * beside its steps. */
int engine_lane_open(struct engine_lane *lane, struct engine_member *of, bool goes_out,
                     struct ifl_error *error);
/* Ends the lane. Call it when the hub is closing. Zeroed memory is valid. */
void engine_lane_close(struct engine_lane *lane);

/* Appends a move. Call it under the lock. Returns 0 or IFL_E_NOMEM. */
int engine_lane_submit(struct engine_lane *lane, struct engine_member *from,
                       const struct ifl_kv_move *move);
/* Returns the first move that has ended and has not been taken, or NULL. Call it under the lock. */
const struct lane_move *engine_lane_first(const struct engine_lane *lane);

/* Makes room for so many places. Returns 0 or IFL_E_NOMEM. */
int engine_tier_create(struct engine_tier *tier, size_t n_places);
void engine_tier_destroy(struct engine_tier *tier);

#endif
