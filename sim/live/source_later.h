/* Tokens and ends on their way to the clients, delayed by the front end, in the order of the
 * engine. */
#ifndef SIM_LIVE_SOURCE_LATER_H
#define SIM_LIVE_SOURCE_LATER_H

#include "inflight/report.h"

#include "run/source.h"

struct heard {
    struct source_token token; /* token.at_ns: when the client receives it */
    bool ended;                /* not a token: the request of token.row has ended */
    struct ifl_request_record record;
};

struct later { /* a ring; zeroed, it is empty */
    struct heard *of;
    size_t first, n, cap;
};

/* Returns 0 or IFL_E_NOMEM. */
int later_add(struct later *later, const struct heard *heard);
struct heard later_take(struct later *later); /* the first; there is one */
static inline int64_t later_due_ns(const struct later *later)
{
    return later->n > 0 ? later->of[later->first].token.at_ns : IFL_NEVER;
}
void later_free(struct later *later);

#endif
