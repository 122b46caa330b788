/* The lives of a point. They are added in the order of their ends and read in the order of
 * arrivals. Most traces number requests by arrival, so a life is stored at the index of its
 * request_id if that index exists and is free. The lives then lie in order of arrival and reading
 * them is sequential. */
#ifndef INFLIGHT_REPORTS_LIVES_H
#define INFLIGHT_REPORTS_LIVES_H

#include "record/life.h"

struct lives {
    struct life *at;    /* [cap], owned; not touched where there is none */
    uint32_t *nth;      /* [cap], owned: order of addition of the life there, from 1 on; 0: none */
    struct rare *rares; /* [n_rares of cap], owned; not touched behind those */
    size_t n, n_rares, cap;
    size_t spare; /* no place before it is free */
};

int lives_open(struct lives *lives, size_t cap, struct ifl_error *error);
void lives_close(struct lives *lives);
/* Adds a life; there must be fewer than cap. The returned address stays valid until lives_close. */
const struct life *lives_add(struct lives *lives, const struct ifl_request_record *record);
/* Fills order[n] with the indices of the lives in order of arrival, then request_id. */
int lives_order(const struct lives *lives, uint32_t *order, struct ifl_error *error);

/* True if lives[order[i]], 0 <= i < n, are in order of arrival. */
static inline bool lives_ascend(const struct life *lives, const uint32_t *order, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (lives[order[i - 1]].arrival_ns > lives[order[i]].arrival_ns)
            return false;
    return true;
}

/* The i-th of n in that order. If the order is not that of the indices, every access would miss the
 * cache, so a life a few positions ahead is prefetched. */
static inline const struct life *life_at(const struct life *lives, const uint32_t *order, size_t n,
                                         size_t i)
{
    ifl_assert(i < n);
    enum { AHEAD = 6 };
    const struct life *soon = &lives[order[i + AHEAD < n ? i + AHEAD : i]];
    __builtin_prefetch(soon);
    __builtin_prefetch(&soon->status);
    return &lives[order[i]];
}

#endif
