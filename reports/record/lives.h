/* The lives of a point: they are added in the order of their ends, and leave in the order of their
 * arrivals.
 *
 * If requests are numbered by arrival, a life leaves once all lives that arrived before it have
 * been added. Lives that wait for an earlier one are kept by number. Lives with equal arrivals
 * leave together, ordered by request_id. Several lives leave at a time, so that the code that
 * writes them is fetched into the instruction cache once for all of them, not in alternation with
 * the event loop.
 *
 * Otherwise all lives are kept to the end. Most traces number requests by arrival, so a life is
 * stored at the index of its request_id if that index exists and is free. The lives then lie in
 * order of arrival and reading them is sequential. */
#ifndef INFLIGHT_REPORTS_LIVES_H
#define INFLIGHT_REPORTS_LIVES_H

#include "record/life.h"

/* Lives that wait for earlier ones: serial s is at index s modulo cap. */
struct early_lives {
    struct life *at;    /* [cap, a power of two], owned; `rare` NULL: it has not been added */
    struct rare *rares; /* [cap], owned: rare fields of the life at that index; not written if it
                           has none */
    size_t cap;
    uint64_t first, known; /* first: number of the next life to leave; lives [first, known) are in
                              order */
    uint64_t same;         /* lives [known, same) have been added and have equal arrivals */
    struct life *gone;     /* the life that left last: its place becomes free with the next call */
};

enum { LIVES_AT_ONCE = 256 };

struct lives {
    size_t n, cap;      /* n: lives added; cap: most lives */
    size_t n_before_go; /* no life leaves before so many have been added */
    bool numbered, ended;
    struct early_lives early; /* if numbered */
    struct life *at;          /* [cap], owned; entries without a life are not written */
    uint32_t *nth;      /* [cap], owned: order of addition of the life there, from 1 on; 0: none */
    struct rare *rares; /* [n_rares of cap], owned; later entries are not written */
    size_t n_rares, spare; /* no place before `spare` is free */
    uint32_t *order;       /* [n], owned: order of arrival, once all have been added */
    size_t n_left;         /* lives of `order` that have left */
};

int lives_open(struct lives *lives, size_t cap, bool numbered, struct ifl_error *error);
void lives_close(struct lives *lives);
/* Adds a life; there must be fewer than cap. It stays at its address until lives_next is called or,
 * if lives are not numbered, until lives_close. Returns NULL if memory is short. */
const struct life *lives_add(struct lives *lives, const struct ifl_request_record *record,
                             struct ifl_error *error);
/* False if lives_next may have no life to return before another one is added or lives_end is
 * called. */
static inline bool lives_may_go(const struct lives *lives)
{
    const struct early_lives *early = &lives->early;
    return lives->numbered && lives->n >= lives->n_before_go &&
           early->at[early->same & (early->cap - 1)].rare;
}
/* Call it when no life will be added any more. */
int lives_end(struct lives *lives, struct ifl_error *error);
/* Returns in *life the next life by arrival, then request_id; it stays valid until the next call.
 * NULL: the next life is not known yet, or there is none. */
int lives_next(struct lives *lives, const struct life **life, struct ifl_error *error);

#endif
