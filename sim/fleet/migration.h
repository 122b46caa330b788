/* Migration: which requests move from one replica to another while they decode, and how (Llumnix:
 * Sun et al., OSDI 2024; AlibabaPAI/llumnix 24220fb of 2025-08, load_computation.py,
 * global_scheduler/migration_filter.py and migration_policy.py, llumlet/migration_coordinator.py
 * and local_migration_scheduler.py).
 *
 * At each multiple of interval_ns the replicas of a pool are paired by the blocks that each has for
 * the growth of a request,
 *
 *     steps = (free - awaited) / (running + waiting), infinite without requests,
 *
 * where `awaited` is the whole blocks that waiting requests need. A replica gives a request away if
 * its steps are below `threshold`, or if one of its own requests has lost its place on the device.
 * It takes a request if its steps are above the threshold and no such request exists. The giver
 * with the fewest steps is paired with the taker with the most, the second giver with the second
 * taker, and so on.
 *
 * A request moves in stages, and decodes in all but the last one. A stage copies the blocks that
 * were filled since the stage before it began, except the last block. When no more than
 * last_stage_blocks are left the request stops, and the last stage copies all of them. The other
 * replica takes blocks when each stage begins. If it has too few free blocks, the request stays
 * where it is.
 *
 * A waiting request has nothing to copy. It moves at once, with blocks for its prompt, to a replica
 * with no earlier request in its queue (_migrate_out_waiting_request; pre_alloc_cache). */
#ifndef SIM_FLEET_MIGRATION_H
#define SIM_FLEET_MIGRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* BALANCED: a pair is made only if the steps of the two replicas come closer to each other, and the
 * taking replica stays above the threshold. */
enum migration_pairs { PAIRS_DEFRAG, PAIRS_BALANCED };
/* The request that moves: of the decoding requests, the one with the fewest tokens, with the most
 * tokens, or that started last; or the first waiting request (FCW). */
enum migration_request { MIGRATE_SHORTEST, MIGRATE_LONGEST, MIGRATE_LAST, MIGRATE_FIRST_WAITING };
/* Which waiting requests count for `awaited`: all, or only the first. */
enum migration_awaited { AWAITED_OF_ALL, AWAITED_OF_FIRST };

struct migration_rules {
    int64_t interval_ns; /* 0: no request moves */
    double threshold;
    enum migration_pairs pairs;
    enum migration_request request;
    enum migration_awaited awaited;
    int32_t max_stages; /* most stages, the last one included; a request that needs more stays */
    int32_t last_stage_blocks;
    int32_t max_moves;     /* most moves at a time to and from a replica */
    double watermark_frac; /* share of a replica's blocks that must stay free when the first blocks
                              are taken */
};

/* A replica that may give or take, in its pool. */
struct migration_load {
    uint32_t replica;
    double free_blocks; /* free blocks minus awaited ones */
    int32_t n_requests, n_lost;
    int32_t last_blocks; /* blocks of the request that started last */
};

struct migration_pair {
    uint32_t from, to;
};

/* Fills `pairs`, which has room for n / 2, and returns their number. Reorders `loads`; `room` is
 * scratch for n entries. */
size_t migration_pair(const struct migration_rules *rules, struct migration_load *loads, size_t n,
                      struct migration_load *room, struct migration_pair *pairs);

#endif
