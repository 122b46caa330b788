/* Shared by orders that are fair to clients: the client of a request, and the output tokens that
 * its client has not been charged for yet.
 *
 * Output tokens are charged when a counter is read (to rank, at an arrival, at a departure), not at
 * every step. */
#ifndef POLICIES_ORDER_ANSWERS_H
#define POLICIES_ORDER_ANSWERS_H

#include "inflight/policy.h"

struct answer {                        /* of a request, zeroed: it has not started */
    const struct ifl_request *request; /* NULL: has not started */
    int32_t n_charged;                 /* output tokens that are charged */
    struct answer *before, *behind;
};

struct answers {
    struct answer *first;
    uint64_t charged_in; /* 1 + view->step when all tokens were charged last */
};

static inline uint32_t answers_client(const struct ifl_request *r, uint32_t n_clients)
{
    return r->client < n_clients ? r->client : 0;
}

static inline void answers_open(struct answers *answers, struct answer *answer,
                                const struct ifl_request *r)
{
    *answer = (struct answer){.request = r, .n_charged = ifl_n_out(r), .behind = answers->first};
    if (answers->first)
        answers->first->before = answer;
    answers->first = answer;
}

static inline void answers_close(struct answers *answers, struct answer *answer)
{
    *(answer->before ? &answer->before->behind : &answers->first) = answer->behind;
    if (answer->behind)
        answer->behind->before = answer->before;
    *answer = (struct answer){0};
}

/* True if steps have ended since the last call: the caller must then charge all answers. */
static inline bool answers_lag(struct answers *answers, const struct ifl_view *view)
{
    const bool lag = answers->charged_in != view->step + 1;
    answers->charged_in = view->step + 1;
    return lag;
}

#endif
