/* The keys of `cluster.migration`: running requests that move between replicas. */
#include "config/key_fields.h"

static const struct ifl_param migration_fields[] = {
    TIME(
        "interval_s", migration.interval_ns, 0, 0, A_BILLION,
        "at its multiples the replicas of a pool are paired, and of each pair a request moves from "
        "one to the other while it decodes (Llumnix); 0: none moves; else at least 0.0001, since "
        "each "
        "multiple is an event of the run"),
    REAL(
        "threshold", migration.threshold, 3, -1e9, 1e9, "blocks",
        "of the free blocks, less those that waiting requests need, so many a request: a replica "
        "with fewer gives a request away, as does one that has preempted a request of its own; one "
        "with more takes it"),
    CHOICE("pairs", migration.pairs, "defrag|balanced", PAIRS_DEFRAG,
           "the replica with the fewest such blocks and the one with the most, and so on; or only "
           "where these come closer to one another, and the one that takes stays above the "
           "threshold"),
    CHOICE("request", migration.request, "shortest|longest|last|first_waiting", MIGRATE_SHORTEST,
           "which of those that decode moves: the one with the fewest tokens, with the most, or "
           "that started last; or the first that waits, at once, to where none waits that came "
           "earlier"),
    CHOICE("awaited", migration.awaited, "all|first", AWAITED_OF_ALL,
           "the waiting requests whose blocks, and which themselves, are counted"),
    INT("max_stages", migration.max_stages, 3, 1, 1000, "stages",
        "K/V moves in so many at most, the last one included, in which the request stands still; "
        "one that needs more stays"),
    INT("last_stage_blocks", migration.last_stage_blocks, 16, 1, ANY, "blocks",
        "the last stage begins where no more are left to move"),
    INT("max_moves", migration.max_moves, 1, 1, ANY, "requests",
        "on their way from a replica and to it at a time"),
    REAL("watermark_frac", migration.watermark_frac, 0.01, 0, 1, "of the blocks",
         "that stay free at a replica that takes the first blocks for a request"),
};

const struct key_table migration_keys = {FIELDS(migration)};
