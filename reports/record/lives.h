/* The lives of a point: they are added in the order of their ends, and leave in that of arrivals.
 *
 * Where requests are numbered by arrival, a life leaves once all that arrived before it have been
 * added: those that wait for an earlier one are kept, by number. Lives of equal arrivals leave
 * together, by request_id. They leave some at a time, so that the code that writes them is fetched
 * into the instruction cache once for all of these, and not in turn with the event loop.
 *
 * Otherwise all are kept to the end. Most traces number requests by arrival, so a life is stored at
 * the index of its request_id if that index exists and is free. The lives then lie in order of
 * arrival and reading them is sequential. */
#ifndef INFLIGHT_REPORTS_LIVES_H
#define INFLIGHT_REPORTS_LIVES_H

#include "record/life.h"

/* Those that wait for earlier ones: serial s is at s modulo cap. */
struct early_lives {
    struct life *at;    /* [cap, a power of two], owned; `rare` NULL: it has not been added */
    struct rare *rares; /* [cap], owned: of the life there; not touched where it has none */
    size_t cap;
    uint64_t first, known; /* the next one that leaves; [first, known) are in order */
    uint64_t same;         /* [known, same) have been added, and arrived at the same time */
    struct life *gone;     /* left last: its place is free with the next call */
};

enum { LIVES_AT_ONCE = 256 };

struct lives {
    size_t n, cap;      /* added; most that will be */
    size_t n_before_go; /* none leaves before that many have been added */
    bool numbered, ended;
    struct early_lives early; /* if numbered */
    struct life *at;          /* [cap], owned; not touched where there is none */
    uint32_t *nth;      /* [cap], owned: order of addition of the life there, from 1 on; 0: none */
    struct rare *rares; /* [n_rares of cap], owned; not touched behind those */
    size_t n_rares, spare; /* no place before `spare` is free */
    uint32_t *order;       /* [n], owned: once they have ended */
    size_t n_left;         /* of them */
};

int lives_open(struct lives *lives, size_t cap, bool numbered, struct ifl_error *error);
void lives_close(struct lives *lives);
/* Adds a life; there must be fewer than cap. It stays where it is until lives_next is called; if
 * lives are not numbered, until lives_close. NULL: there is no memory for it. */
const struct life *lives_add(struct lives *lives, const struct ifl_request_record *record,
                             struct ifl_error *error);
/* False: it is early for lives_next, which may have nothing to give before another life is added,
 * or they have ended. */
static inline bool lives_may_go(const struct lives *lives)
{
    const struct early_lives *early = &lives->early;
    return lives->numbered && lives->n >= lives->n_before_go &&
           early->at[early->same & (early->cap - 1)].rare;
}
/* No life will be added any more. */
int lives_end(struct lives *lives, struct ifl_error *error);
/* *life: the next one by arrival, then request_id, which stays there until the next call; NULL: the
 * next one is not known yet, or there is none. */
int lives_next(struct lives *lives, const struct life **life, struct ifl_error *error);

#endif
