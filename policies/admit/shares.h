/* A sum over everyone who has started, for admit modules that else look at each of them: what they
 * will hold at most. Mostly it says alone that a newcomer has room.
 *
 * A request has its share from its first start until it leaves for good: who
 * gives way in between comes back. */
#ifndef POLICIES_ADMIT_SHARES_H
#define POLICIES_ADMIT_SHARES_H

#include "inflight/policy.h"

struct shares { /* of an instance, zeroed */
    int64_t tokens;
};

struct share { /* of a request, zeroed: it has not started */
    int64_t tokens;
};

/* As often as one likes: only the last time counts. 0 as it leaves. */
static inline void shares_set(struct shares *shares, struct share *share, int64_t tokens)
{
    shares->tokens += tokens - share->tokens;
    share->tokens = tokens;
}

#endif
