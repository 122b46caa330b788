/* The sums of a point's lives, added as the lives come. */
#ifndef INFLIGHT_REPORTS_TALLY_H
#define INFLIGHT_REPORTS_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "record/exact_sum.h"
#include "record/life.h"
#include "record/selection.h"

enum latency {
    LATENCY_TTFT,
    LATENCY_TPOT,
    LATENCY_ITL, /* gaps between tokens: not a latency of lives */
    LATENCY_E2E,
    LATENCY_NORMALIZED,
    LATENCY_QUEUE,
    N_LATENCIES
};

/* Samples are summed up in groups of this size, one latency after the other: the buckets of a
 * latency take more memory than the event loop leaves in the first-level caches, and are fetched
 * once per group. */
#define LATENCY_RECENT ((size_t)1 << 15)

/* Sums of a latency over the finished requests that have it. */
struct latency_sums {
    int64_t *recent_ns; /* [n_recent of LATENCY_RECENT], owned: samples not yet in the fields
                           below */
    size_t n_recent;
    uint64_t n;
    int64_t least_ns, most_ns;
    struct selection selection; /* of latency_bin_ns; `held` NULL: all samples will be taken */
    struct exact_sum total_ns;
};

struct tally {
    struct latency_sums of[N_LATENCIES];
    uint64_t n, n_of[IFL_N_STATUSES], n_meeting_slos, n_retries;
    int64_t wasted_tokens, wasted_steps;
    uint64_t preemptions, swap_outs;
    uint64_t n_migrations, n_migrated;
    int64_t down_ns;
    int64_t prompt_tokens, cached_tokens, output_tokens; /* of finished requests */
    int64_t tier_tokens[IFL_N_TIERS];
    int64_t first_arrival_ns, last_arrival_ns, last_finish_ns;
};

/* The latencies of a finished life; IFL_NEVER where undefined, and for LATENCY_ITL. */
static inline void latencies_of(const struct life *life, int64_t ns[N_LATENCIES])
{
    ns[LATENCY_TTFT] = life_ttft_ns(life);
    ns[LATENCY_TPOT] = life_tpot_ns(life);
    ns[LATENCY_ITL] = IFL_NEVER;
    ns[LATENCY_E2E] = life_e2e_ns(life);
    ns[LATENCY_NORMALIZED] = life_normalized_ns(life);
    ns[LATENCY_QUEUE] = life_queue_ns(life);
}

/* Measured latencies may be negative, since clocks of servers may go backwards. */
static inline int64_t latency_bin_ns(int64_t ns)
{
    return ns > 0 ? ns : 0;
}

/* Opens a tally for at most n lives. Zeroed memory is valid for tally_close. */
int tally_open(struct tally *tally, size_t n, struct ifl_error *error);
void tally_close(struct tally *tally);
/* Copies the lives of `from` to `to`, which must be empty and opened for as many lives. */
void tally_copy(struct tally *to, const struct tally *from);
/* Adds a life; lives come in order of arrival. */
void tally_life(struct tally *tally, const struct life *life);
/* Call it after the last life, before the latencies are read. */
void tally_end(struct tally *tally);

#endif
