/* The sums and samples of a point's lives, gathered in one pass: a million lives do not fit into
 * the caches. */
#ifndef INFLIGHT_REPORTS_TALLY_H
#define INFLIGHT_REPORTS_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "record/exact_sum.h"
#include "record/life.h"

enum latency {
    LATENCY_TTFT,
    LATENCY_TPOT,
    LATENCY_ITL, /* of gaps, not of lives */
    LATENCY_E2E,
    LATENCY_NORMALIZED,
    LATENCY_QUEUE,
    N_LATENCIES
};

struct samples {
    int64_t *ns; /* [n], in the order of tally_life */
    size_t n;
    struct exact_sum total_ns;
};

struct tally {
    struct samples of[N_LATENCIES]; /* of finished requests, where defined */
    int64_t *ns;                    /* owned: memory of all samples */
    uint64_t n, n_of[IFL_N_STATUSES], n_meeting_slos, n_retries;
    int64_t wasted_tokens;
    uint64_t preemptions, swap_outs;
    uint64_t n_migrations, n_migrated;
    int64_t down_ns;
    int64_t prompt_tokens, cached_tokens, output_tokens; /* of finished requests */
    int64_t tier_tokens[IFL_N_TIERS];
    int64_t first_arrival_ns, last_finish_ns;
};

/* Makes room for n lives. `memory` is NULL or a block to reuse, which the tally then owns. */
int tally_open(struct tally *tally, size_t n, void *memory, struct ifl_error *error);
/* Adds a life; lives come in order of arrival. */
void tally_life(struct tally *tally, const struct life *life);
void tally_close(struct tally *tally);

#endif
