/* Contiguous K/V: a buddy allocator (Knowlton, Communications of the ACM 8(10), 1965), as under the
 * Orca baselines of the vLLM paper (Kwon et al., SOSP 2023, section 6.1).
 *
 * Runs are powers of two of blocks, aligned to their size. A run that is larger than wanted is
 * halved; a run given back is joined with its buddy, the other half, as soon as both are free. If
 * the size of a pool is no power of two, the pool begins as several aligned runs. */
#ifndef SIM_REPLICA_KV_BUDDY_H
#define SIM_REPLICA_KV_BUDDY_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/error.h"

enum { KV_BUDDY_ORDERS = 31 };

struct kv_buddy {
    int32_t n_blocks;
    int32_t n_slack;               /* blocks of taken runs beyond what was asked for */
    int32_t free[KV_BUDDY_ORDERS]; /* the first free run of 2^order blocks, -1: none */
    int32_t *next, *prev;          /* [n_blocks] free runs of the same order, by first block */
    int8_t *order;                 /* [n_blocks] of the free run that begins there, or -1 */
};

/* Returns 0 or IFL_E_NOMEM. A zeroed allocator is valid and empty. */
int kv_buddy_create(struct kv_buddy *buddy, int32_t n_blocks);
void kv_buddy_destroy(struct kv_buddy *buddy);

/* The size of a run for n > 0 blocks: n rounded up to a power of two. */
int64_t kv_buddy_rounded(int32_t n);
/* True if some free run has room for n > 0 blocks. */
bool kv_buddy_fits(const struct kv_buddy *buddy, int32_t n);
/* Takes a run for n blocks, which must fit, and returns its first block. */
int32_t kv_buddy_take(struct kv_buddy *buddy, int32_t n);
/* Gives back the run that was taken for n blocks. */
void kv_buddy_give(struct kv_buddy *buddy, int32_t first, int32_t n);

#endif
