/* Which blocks hold the same K/V: a block's identity covers its tokens and all tokens before it.
 *
 * A trace has lengths, not texts, so a token is identified by its source:
 *   - below stream_tokens: by its place in the stream of its group;
 *   - below named_tokens: by the trace's hash id that covers it, and its place under that id;
 *   - any other token of a prompt that is sent again: by its place in it;
 *   - any other token: by its request, and its place in the request.
 * A stream names the first prefix_tokens of a prompt. A stream or hash ids that cover the whole
 * prompt also name the part of the answer that the session's next turn repeats.
 *
 * Identities are chained, as vLLM chains the hashes of blocks. They have 64 bits: with 10^8 blocks
 * in the table the chance that any two collide is below one in a thousand. */
#ifndef SIM_REPLICA_KV_IDENTITY_H
#define SIM_REPLICA_KV_IDENTITY_H

#include "replica/live_request.h"

/* Returns the identity of the request's block number `block`. before: the identity of the previous
 * block, 0 for the first. */
uint64_t kv_identity(const struct live_request *r, uint64_t before, int32_t block,
                     int32_t block_tokens);

/* Number of leading tokens of the request, prompt and answer, that other requests may have, too. */
int32_t kv_shareable_tokens(const struct live_request *r);

/* Number of leading tokens that two prompts have in common. */
int32_t kv_common_tokens(const struct ifl_request *a, const struct ifl_request *b);

#endif
