/* An index of all blocks that the prefix caches of a fleet list: from the identity of a block
 * (replica/kv/cache.h) to the replicas that hold it. A router uses the index to find the replica
 * that holds the most of a prompt without examining each replica. The caches report each block that
 * they list or lose. */
#ifndef SIM_FLEET_HOLDERS_H
#define SIM_FLEET_HOLDERS_H

#include "base/slots.h"
#include "replica/replica.h"

/* One listed block of a replica. If a replica lists two blocks with the same identity, there are
 * two entries. */
struct holding {
    uint64_t identity;
    uint32_t replica;
    uint32_t next; /* 1 + place of the next entry in its bucket; 0: it is the last */
};

struct holders {
    struct kv_listener listener; /* called by the caches */
    struct replica *replicas;    /* [n], borrowed; NULL: not open yet */
    uint32_t n_caches;           /* replicas with a prefix cache; 0: the index stays empty */
    struct holding *of;          /* [slots.n] */
    struct slots slots;
    uint32_t *buckets; /* [mask + 1] 1 + place of the first entry; 0: none */
    uint64_t mask;
    bool lacks_memory; /* memory was short: some blocks are missing in the index */
};

/* From now on the caches of these replicas report to the index; they report the blocks that they
 * hold already at once. Returns 0 or IFL_E_NOMEM. `holders` must stay at its address. Zeroed memory
 * is valid for holders_close. */
int holders_open(struct holders *holders, struct replica *replicas, uint32_t n);
void holders_close(struct holders *holders);
static inline bool holders_are_open(const struct holders *holders)
{
    return holders->replicas != NULL;
}

/* Returns the replica with the most tokens of r in its cache, among the replicas [first, first +
 * n), which must have the same block size. Ties go to the lower number. *n_tokens is the number of
 * these tokens, 0 if no replica has any. Costs a lookup for each block found, and a look at each
 * replica that holds the last of these blocks. */
uint32_t holders_longest(const struct holders *holders, uint32_t first, uint32_t n,
                         const struct live_request *r, int32_t *n_tokens);

#endif
