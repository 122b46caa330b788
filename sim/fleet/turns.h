/* Classes of requests that are held at the gateway, and whose turn it is: deficit round robin
 * (Shreedhar and Varghese 1996), as Dynamo's router has it (lib/kv-router/src/scheduling/
 * policy_queue.rs, pop_next, main branch of 2026). Where requests are larger than quanta, rounds
 * are given whole and at once, so that a class behind the one that goes has its next round early:
 * shares differ from the quanta by some percent. */
#ifndef SIM_FLEET_TURNS_H
#define SIM_FLEET_TURNS_H

#include <stdint.h>

#include "inflight/error.h"

enum { CLASSES_MOST = 16, NO_CLASS = -1 };

/* Class i is of requests with from_tokens[i] and more tokens to compute, and fewer than
 * from_tokens[i + 1]. */
struct classes {
    int n; /* 0: all requests are of one class */
    int32_t from_tokens[CLASSES_MOST];
    int64_t quantum_tokens[CLASSES_MOST]; /* credit of a round */
};

/* "FROM:QUANTUM, FROM:QUANTUM, ...", the first from 0; "": none. */
int classes_read(struct classes *classes, const char *list, struct ifl_error *error);
int classes_of(const struct classes *classes, int32_t n_tokens);

struct turns { /* zeroed: before the first turn */
    int64_t credit_tokens[CLASSES_MOST];
    int first;  /* class that the next round begins with */
    int served; /* 1 + the class that goes on with what is left of its credit; 0: none */
};

/* What is at the head of a class: the tokens that it takes; TURNS_NOTHING: no request is held;
 * TURNS_NOT_YET: none of it may go. */
enum { TURNS_NOTHING = -1, TURNS_NOT_YET = 0 };

/* The class whose head goes now, for which its credit is enough; NO_CLASS: no head may go.
 * `more` is told by turns_spend. */
int turns_next(struct turns *turns, const struct classes *classes,
               const int64_t heads_tokens[CLASSES_MOST]);
/* The head of the class has gone; `any`: others of it are held. */
void turns_spend(struct turns *turns, const struct classes *classes, int class_of, int64_t n_tokens,
                 bool any);

#endif
