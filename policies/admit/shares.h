/* The most tokens that all started requests will hold, as a sum, for admit modules that would
 * otherwise walk over them. In most cases the sum alone shows that a newcomer has room.
 *
 * A request has its share from its first start until it leaves for good, also while it is
 * preempted. */
#ifndef POLICIES_ADMIT_SHARES_H
#define POLICIES_ADMIT_SHARES_H

#include "inflight/policy.h"

struct shares { /* of an instance, zeroed */
    int64_t tokens;
};

struct share { /* of a request, zeroed: it has not started */
    int64_t tokens;
};

/* Sets the share of a request; a later call replaces an earlier one. Call with 0 when it leaves. */
static inline void shares_set(struct shares *shares, struct share *share, int64_t tokens)
{
    shares->tokens += tokens - share->tokens;
    share->tokens = tokens;
}

#endif
