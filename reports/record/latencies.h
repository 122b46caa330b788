/* Exact quantiles of the latencies of lives: a tally has counted them in buckets, and a second pass
 * takes the few samples that matter (selection.h). */
#ifndef INFLIGHT_REPORTS_LATENCIES_H
#define INFLIGHT_REPORTS_LATENCIES_H

#include "record/quantile.h"

#include "record/tally.h"

struct latency_samples {
    const struct selection *selection; /* NULL: all samples are taken */
    int64_t *ns;                       /* [n], owned */
    uint32_t *count;                   /* [n], owned */
    size_t n;
};

struct latencies {
    struct latency_samples of[N_LATENCIES];
};

/* Opens the second pass over the lives of the tally, to which no more lives are added. Zeroed
 * memory is valid for latencies_close. */
int latencies_open(struct latencies *latencies, struct tally *tally, struct ifl_error *error);
void latencies_close(struct latencies *latencies);
/* Call it for each of these lives. */
void latencies_take(struct latencies *latencies, const struct life *life);
/* Call it after the second pass: fills the distributions, except that of LATENCY_ITL. */
int latencies_describe(struct latencies *latencies, const struct tally *tally,
                       struct distribution of[N_LATENCIES], struct ifl_error *error);

#endif
