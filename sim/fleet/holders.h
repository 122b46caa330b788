/* An index of all blocks that the prefix caches of a fleet list: from the identity of a block
 * (replica/kv/cache.h) to the replicas that hold it. With it a router finds the replica that holds
 * the most of a prompt without a look at each replica. The caches report each block that they list
 * or lose. */
#ifndef SIM_FLEET_HOLDERS_H
#define SIM_FLEET_HOLDERS_H

#include "base/slots.h"
#include "replica/replica.h"

/* One listed block of a replica. A replica that lists two with the same identity has two. */
struct holding {
    uint64_t identity;
    uint32_t replica;
    uint32_t next; /* in its bucket, its place + 1; 0: it is the last */
};

struct holders {
    struct kv_listener listener; /* of the caches */
    struct replica *replicas;    /* [n], borrowed; NULL: not open yet */
    uint32_t n_caches;           /* of them have a prefix cache; 0: nothing is ever held */
    struct holding *of;          /* [slots.n] */
    struct slots slots;
    uint32_t *buckets; /* [mask + 1] the place of the first + 1 */
    uint64_t mask;
    bool lacks_memory; /* some blocks are missing in it */
};

/* From now on the caches of these replicas report to it; blocks that they hold already, at once. 0
 * or IFL_E_NOMEM. It must stay where it is. Zeroed memory is valid for holders_close. */
int holders_open(struct holders *holders, struct replica *replicas, uint32_t n);
void holders_close(struct holders *holders);
static inline bool holders_are_open(const struct holders *holders)
{
    return holders->replicas != NULL;
}

/* The replica with the most of r in its cache, of replicas [first, first + n), which have blocks of
 * the same size, and how many tokens; ties go to the lower number. *n_tokens is 0 if none has any.
 * Costs a look-up for each block of the answer, and a look at each replica that holds the last. */
uint32_t holders_longest(const struct holders *holders, uint32_t first, uint32_t n,
                         const struct live_request *r, int32_t *n_tokens);

#endif
