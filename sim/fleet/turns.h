/* Classes of requests that are held at the gateway, and which class sends a request next: deficit
 * round robin (Shreedhar and Varghese 1996), as in Dynamo's router
 * (lib/kv-router/src/scheduling/policy_queue.rs, pop_next, main branch of 2026). If requests are
 * larger than quanta, all rounds that a class still needs to reach its next request are credited at
 * once, and the other classes get these quanta early. The shares of classes therefore differ from
 * their quanta by some percent.
 *
 * As in the paper, a class sends further requests while its credit suffices, but only as long as
 * each question finds a request that may go. A question that finds none passes the round to the
 * next class (carry_class is taken, and is not set again; queue.rs asks until no request may go).
 * The credit stays.
 *
 * So if the gateway lets one request go at a time, a class with requests of n quanta gains one
 * quantum with each request of another class, and sends one request behind n of these. Between it
 * and a class with requests of one quantum, tokens are then shared as its quantum to the size of a
 * request of the other class. Two classes with requests of one quantum take turns. */
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

/* Reads "FROM:QUANTUM, FROM:QUANTUM, ..."; the first FROM must be 0; "": no classes. Returns 0 or
 * the code of `error`. */
int classes_read(struct classes *classes, const char *list, struct ifl_error *error);
int classes_of(const struct classes *classes, int32_t n_tokens);

struct turns { /* zeroed: before the first turn */
    int64_t credit_tokens[CLASSES_MOST];
    int first;  /* the class that the next round begins with */
    int served; /* 1 + the class that continues with the rest of its credit; 0: none, or no head
                   could go in the meantime */
};

/* Returns the class that sends its first request now, for which its credit suffices; NO_CLASS: no
 * first request may go. heads_tokens: the tokens of the first request of each class; 0: there is
 * none, or it may not go. */
int turns_next(struct turns *turns, const struct classes *classes,
               const int64_t heads_tokens[CLASSES_MOST]);
/* Charges the class for its first request, which goes. */
void turns_spend(struct turns *turns, const struct classes *classes, int class_of,
                 int64_t n_tokens);
/* Call it when no request of the class is held any more: the class loses its credit. */
static inline void turns_forget(struct turns *turns, int class_of)
{
    turns->credit_tokens[class_of] = 0;
}

#endif
