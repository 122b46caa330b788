/* The keys of `cluster.migration`: running requests that move between replicas. */
#include "config/key_fields.h"

static const struct ifl_param migration_fields[] = {
    TIME("interval_s", migration.interval_ns, 0, 0, A_BILLION,
         "at multiples of this, the replicas of a pool are paired, and one request of each pair "
         "moves while it decodes (Llumnix); 0: no migration; else at least 0.0001, because each "
         "multiple is an event of the run"),
    REAL("threshold", migration.threshold, 3, -1e9, 1e9, "blocks",
         "limit of (free blocks - blocks that waiting requests need) / requests: a replica below "
         "it, or with a preempted request, gives a request away; a replica above it takes one"),
    CHOICE("pairs", migration.pairs, "defrag|balanced", PAIRS_DEFRAG,
           "defrag: the giving replica with the fewest such blocks and the taking one with the "
           "most, and so on; balanced: only pairs that a move brings closer together and whose "
           "taking replica stays at or above the threshold"),
    CHOICE("request", migration.request, "shortest|longest|last|first_waiting", MIGRATE_SHORTEST,
           "request that moves: the decoding one with the fewest tokens, with the most, or that "
           "started last; or the first waiting one, at once, if no earlier arrival waits at the "
           "other replica"),
    CHOICE("awaited", migration.awaited, "all|first", AWAITED_OF_ALL,
           "which waiting requests count in that limit, with the blocks that they need"),
    INT("max_stages", migration.max_stages, 3, 1, 1000, "stages",
        "most stages of a move, including the last one, in which the request does not decode; a "
        "request that needs more stages stays"),
    INT("last_stage_blocks", migration.last_stage_blocks, 16, 1, ANY, "blocks",
        "the last stage begins when at most this many are left to copy"),
    INT("max_moves", migration.max_moves, 1, 1, ANY, "requests",
        "most moves from and to a replica at a time"),
    REAL("watermark_frac", migration.watermark_frac, 0.01, 0, 1, "of the blocks",
         "fraction that must stay free at the other replica when a move takes its first blocks"),
};

const struct key_table migration_keys = {FIELDS(migration)};
