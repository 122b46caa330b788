/* The lives of a point. They come in the order of their ends, and reports go through them in the
 * order of arrivals. Most traces number requests as they arrive, so each lies at the place of its
 * number, where that is there and free: then they lie in order, and no look at one is a miss. */
#ifndef INFLIGHT_REPORTS_LIVES_H
#define INFLIGHT_REPORTS_LIVES_H

#include "life.h"

struct lives {
    struct life *at;    /* [cap], owned; not touched where there is none */
    uint32_t *nth;      /* [cap], owned: which one to come lies there, from 1 on; 0: none */
    struct rare *rares; /* [n_rares of cap], owned; not touched behind those */
    size_t n, n_rares, cap;
    size_t spare; /* no place before it is free */
};

int lives_open(struct lives *lives, size_t cap, struct ifl_error *error);
void lives_close(struct lives *lives);
/* One more; there are fewer than cap. It stays where it is. */
const struct life *lives_add(struct lives *lives, const struct ifl_request_record *record);
/* Their places by arrival, then request_id: order[n]. */
int lives_order(const struct lives *lives, uint32_t *order, struct ifl_error *error);

/* The i-th of n in that order. Where it is not that of their places, each would be a miss: what
 * comes soon is fetched now. */
static inline const struct life *life_at(const struct life *lives, const uint32_t *order, size_t n,
                                         size_t i)
{
    enum { AHEAD = 6 };
    const struct life *soon = &lives[order[i + AHEAD < n ? i + AHEAD : i]];
    __builtin_prefetch(soon);
    __builtin_prefetch(&soon->status);
    return &lives[order[i]];
}

#endif
