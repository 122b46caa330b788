/* Whether the arrival rate of a point was above capacity; saturation.c has the rule. */
#ifndef INFLIGHT_REPORTS_SATURATION_H
#define INFLIGHT_REPORTS_SATURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/life.h"

#define SATURATION_BINS 20

struct saturation {
    int64_t from_ns;
    double bins_per_ns; /* 0: all requests arrive at once */
    size_t n_arrived;   /* requests since from_ns; arrived_tokens are their tokens */
    double arrived_tokens;
    double in_bin[SATURATION_BINS];     /* amount that growth within a bin adds to the bin's mean */
    double behind[SATURATION_BINS + 1]; /* growth before the bin, which counts for the whole bin */
};

/* first_ns and last_ns are the first and the last arrival of all lives. */
void saturation_begin(struct saturation *saturation, int64_t first_ns, int64_t last_ns);
/* Adds a life; lives come in order of arrival. */
void saturation_add(struct saturation *saturation, const struct life *life);
bool saturation_found(const struct saturation *saturation);

#endif
