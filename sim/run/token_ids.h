/* The tokens behind a request's counts.
 *
 * A trace has only lengths, so prompts that no client sends are drawn: token i depends on the seed,
 * the request and i. Requests that share a prefix share its tokens:
 * - The first stream_tokens are drawn from the stream of the prefix group.
 * - Tokens for which the trace has hash ids are drawn from those.
 * - Prompts that are sent again are drawn from a number that they share.
 * - An answer that the next turn repeats is drawn in the same way. What the engine generates in its
 *   place is ignored, so that both turns have the same tokens.
 *
 * What an engine has generated is stored until the request leaves: a recompute feeds it back as if
 * it were prompt. Engines choose the likeliest token, which is the same for all sequences of a
 * group. So all sequences but the first begin their answers with a drawn token, and differ from
 * there on. */
#ifndef SIM_RUN_TOKEN_IDS_H
#define SIM_RUN_TOKEN_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

struct generated {
    int32_t *tokens; /* [position behind the prompt][sequence] */
    size_t cap;
};

struct token_ids {
    uint64_t seed;
    int32_t n_vocab;
    struct generated *of; /* [n_requests] by serial number */
    size_t n_requests;
};

struct token_owner { /* a copy of the fields that are needed, since the request itself may change */
    uint64_t serial;
    int32_t seq, n_seqs; /* seq: number in its group; n_seqs: sequences of the group */
    int32_t n_prompt;
    uint64_t repeats; /* as in struct ifl_work */
    uint32_t prefix_group;
    int32_t stream_tokens; /* leading tokens, answer included, that are tokens of the prefix
                              group's stream */
    const int32_t *prompt; /* [n_prompt] the tokens themselves; NULL: they are drawn */
    const uint64_t *hash_ids;
    int32_t named_tokens, hash_id_tokens; /* named_tokens: leading tokens, answer included, that
                                             the hash ids cover */
};

/* Returns 0 or IFL_E_NOMEM. */
int token_ids_create(struct token_ids *ids, uint64_t seed, int32_t n_vocab, size_t n_requests);
void token_ids_destroy(struct token_ids *ids);

/* True if the trace names token `index` of the sequence. Such a token is used whatever was sampled
 * in its place. */
static inline bool token_ids_are_told(const struct token_owner *owner, int32_t index)
{
    return index < owner->named_tokens || index < owner->stream_tokens;
}

/* Returns token `index` of the sequence, counted from the beginning of the prompt. */
int32_t token_ids_get(const struct token_ids *ids, const struct token_owner *owner, int32_t index);
/* Stores a generated token. Returns 0 or IFL_E_NOMEM. */
int token_ids_put(struct token_ids *ids, const struct token_owner *owner, int32_t index,
                  int32_t token);
void token_ids_forget(struct token_ids *ids, uint64_t serial);

#endif
