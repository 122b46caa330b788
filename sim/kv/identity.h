/* Which blocks hold the same K/V: the identity of a block is that of its tokens and of all before.
 *
 * A trace tells lengths, not texts, so tokens are known by where they come from: a token below
 * stream_tokens by its place in its group's stream, one below named_tokens by the trace's hash id
 * that it stands under and its place there, any other token by its request and its place there. A
 * stream holds a prompt's first prefix_tokens; it and ids go on behind a prompt that they cover,
 * over the answer that the session's next turn repeats. Identities are chained, as vLLM chains the
 * hashes of blocks (64 bits; with 10^8 blocks in the table the chance that any two collide is below
 * one in a thousand). */
#ifndef SIM_KV_IDENTITY_H
#define SIM_KV_IDENTITY_H

#include "live_request.h"

/* Of block `block` of the request, given that of the block before it (0 for the first). */
uint64_t kv_identity(const struct live_request *r, uint64_t before, int32_t block,
                     int32_t block_tokens);

/* Leading tokens, of the answer too, that other requests may have. */
int32_t kv_shareable_tokens(const struct live_request *r);

/* Leading tokens that two prompts have in common. */
int32_t kv_common_tokens(const struct ifl_request *a, const struct ifl_request *b);

#endif
