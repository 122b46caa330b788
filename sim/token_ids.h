/* The tokens behind a request's counts.
 *
 * A trace tells lengths alone, so prompts are drawn: token i depends on the seed, the request and
 * i. The first stream_tokens come from its prefix group's stream instead, and what the trace has
 * hash ids for from those, so that requests which share a prefix share its tokens. What an engine
 * has generated is remembered until the request leaves: a recompute feeds it back as if it were
 * prompt. But an answer that the next turn repeats is the stream's, too: what the engine says there
 * is not heard, so that both turns have the same tokens. Engines choose the likeliest token, which
 * is the same for all sequences of a group: all but the first begin their answers with a token
 * drawn, and differ from there on. */
#ifndef SIM_TOKEN_IDS_H
#define SIM_TOKEN_IDS_H

#include <stddef.h>
#include <stdint.h>

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

struct token_owner { /* what is needed of a request, also after it has changed */
    uint64_t serial;
    int32_t seq, n_seqs; /* of its group; sequences in it */
    int32_t n_prompt;
    uint32_t prefix_group;
    int32_t stream_tokens; /* leading ones, of the answer too, that are the group's stream */
    const uint64_t *hash_ids;
    int32_t named_tokens, hash_id_tokens; /* leading ones, of the answer too, that these name */
};

/* 0, or -1 without memory. */
int token_ids_create(struct token_ids *ids, uint64_t seed, int32_t n_vocab, size_t n_requests);
void token_ids_destroy(struct token_ids *ids);

/* Token `index` of the sequence, the prompt included. */
int32_t token_ids_get(const struct token_ids *ids, const struct token_owner *owner, int32_t index);
/* That token was generated. 0, or -1 without memory. */
int token_ids_put(struct token_ids *ids, const struct token_owner *owner, int32_t index,
                  int32_t token);
void token_ids_forget(struct token_ids *ids, uint64_t serial);

#endif
