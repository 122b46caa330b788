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
 * It takes a request if its steps are above the threshold and none has. The giver with the fewest
 * steps is paired with the taker with the most, the second giver with the second taker, and so on.
 *
 * A request moves in stages, and decodes in all but the last one. A stage copies the blocks that
 * were filled since the stage before it began, except the last block. When no more than
 * last_stage_blocks are left the request stops, and the last stage copies all of them. The other
 * replica takes blocks as each stage begins; if it has too few the request stays.
 *
 * A waiting request has nothing to copy. It moves at once, with blocks for its prompt, to a replica
 * with no earlier request in its queue (_migrate_out_waiting_request; pre_alloc_cache). */
#ifndef SIM_FLEET_MIGRATION_H
#define SIM_FLEET_MIGRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* balanced: only where the two come closer to one another, and the one that takes stays above the
 * threshold. */
enum migration_pairs { PAIRS_DEFRAG, PAIRS_BALANCED };
/* Of those that decode: the one with the fewest tokens, the most, or that started last. Or the
 * first that waits (FCW). */
enum migration_request { MIGRATE_SHORTEST, MIGRATE_LONGEST, MIGRATE_LAST, MIGRATE_FIRST_WAITING };
/* The waiting requests that count for awaited blocks: all, or the first. */
enum migration_awaited { AWAITED_OF_ALL, AWAITED_OF_FIRST };

struct migration_rules {
    int64_t interval_ns; /* 0: none moves */
    double threshold;
    enum migration_pairs pairs;
    enum migration_request request;
    enum migration_awaited awaited;
    int32_t max_stages; /* the last one included; one that needs more stays */
    int32_t last_stage_blocks;
    int32_t max_moves;     /* of a replica at a time, to it and from it */
    double watermark_frac; /* of its blocks that stay free where the first ones are taken */
};

/* A replica that may give or take, in its pool. */
struct migration_load {
    uint32_t replica;
    double free_blocks; /* less those that are awaited */
    int32_t n_requests, n_lost;
    int32_t last_blocks; /* of the request that started last */
};

struct migration_pair {
    uint32_t from, to;
};

/* Fills `pairs`, with room for n / 2, and returns their number. `loads` change their places; `room`
 * is scratch for n. */
size_t migration_pair(const struct migration_rules *rules, struct migration_load *loads, size_t n,
                      struct migration_load *room, struct migration_pair *pairs);

#endif
