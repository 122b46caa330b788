/* The longest match of a prompt, from its start, at each replica, by a router's index of holders.
 */
#ifndef POLICIES_ROUTE_LONGEST_MATCH_H
#define POLICIES_ROUTE_LONGEST_MATCH_H

#include "inflight/minmax.h"

#include "holders.h"
#include "prompt_blocks.h"

/* The first member of the router's part of a replica. */
struct match_part {
    int32_t n_matched; /* matched blocks; scratch of `pick`, which sets it before reading */
};

static inline struct match_part *match_at(const void *self, size_t replica)
{
    return ifl_at(self, replica);
}

/* Sets n_matched of all replicas. Returns the largest n_matched of the replicas that may take the
 * request. `blocks` must begin at the start of the prompt. */
static inline int32_t longest_match(const void *self, const struct ifl_fleet *fleet,
                                    const struct holders *index, struct prompt_blocks blocks)
{
    int32_t most = 0;
    for (size_t i = 0; i < fleet->n; i++)
        match_at(self, i)->n_matched = 0;
    while (prompt_blocks_next(&blocks) && most == blocks.i) {
        uint32_t pair = holders_latest(index, blocks.key);
        for (; pair; pair = holders_before(index, pair)) {
            struct match_part *part = match_at(self, index->of[pair].replica);
            part->n_matched += part->n_matched == blocks.i;
            most = ifl_max(most, part->n_matched);
        }
    }
    most = 0;
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++)
        most = ifl_max(most, match_at(self, ifl_nth(fleet, IFL_PREFILLS, k))->n_matched);
    return most;
}

#endif
