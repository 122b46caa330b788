#include "run/token_ids.h"

#include <stdbool.h>
#include <stdlib.h>

#include "inflight/error.h"
#include "inflight/minmax.h"
#include "inflight/random.h"

int token_ids_create(struct token_ids *ids, uint64_t seed, int32_t n_vocab, size_t n_requests)
{
    *ids = (struct token_ids){.seed = seed,
                              .n_vocab = n_vocab,
                              .of = calloc(n_requests + 1, sizeof *ids->of),
                              .n_requests = n_requests};
    return ids->of ? 0 : IFL_E_NOMEM;
}

void token_ids_destroy(struct token_ids *ids)
{
    for (size_t i = 0; ids->of && i < ids->n_requests; i++)
        free(ids->of[i].tokens);
    free(ids->of);
    *ids = (struct token_ids){0};
}

static uint64_t draw_of_prompt(const struct token_ids *ids, const struct token_owner *owner,
                               uint32_t i)
{
    const uint32_t id_tokens = (uint32_t)owner->hash_id_tokens;
    if (i < (uint32_t)owner->stream_tokens)
        return ifl_draw(ids->seed, IFL_DRAW_PREFIX_TOKEN, owner->prefix_group, i);
    if (i < (uint32_t)owner->named_tokens)
        return ifl_draw(ids->seed, IFL_DRAW_HASHED_TOKEN, owner->hash_ids[i / id_tokens],
                        i % id_tokens);
    if (owner->repeats > 0)
        return ifl_draw(ids->seed, IFL_DRAW_REPEATED_TOKEN, owner->repeats, i);
    return ifl_draw(ids->seed, IFL_DRAW_TOKEN, owner->serial, i);
}

static size_t place_of(const struct token_owner *owner, int32_t index)
{
    return (size_t)(index - owner->n_prompt) * (size_t)owner->n_seqs + (size_t)owner->seq;
}

int32_t token_ids_get(const struct token_ids *ids, const struct token_owner *owner, int32_t index)
{
    ifl_assert(owner->serial < ids->n_requests);
    if (owner->prompt && index < owner->n_prompt)
        return owner->prompt[index] % ids->n_vocab;
    const bool begins = index == owner->n_prompt && owner->seq > 0;
    const int32_t n_told = ifl_max(owner->named_tokens, owner->stream_tokens);
    if (index >= owner->n_prompt && index >= n_told && !begins)
        return ids->of[owner->serial].tokens[place_of(owner, index)];
    const uint64_t draw =
        begins ? ifl_draw(ids->seed, IFL_DRAW_SAMPLED_TOKEN, owner->serial, (uint64_t)owner->seq)
               : draw_of_prompt(ids, owner, (uint32_t)index);
    return (int32_t)(draw % (uint64_t)ids->n_vocab);
}

int token_ids_put(struct token_ids *ids, const struct token_owner *owner, int32_t index,
                  int32_t token)
{
    struct generated *generated = &ids->of[owner->serial];
    const size_t i = place_of(owner, index);
    ifl_require(owner->serial < ids->n_requests && index >= owner->n_prompt);
    if (i >= generated->cap) {
        const size_t cap = i < 32 ? 64 : 2 * i;
        int32_t *tokens = realloc(generated->tokens, cap * sizeof *tokens);
        if (!tokens)
            return IFL_E_NOMEM;
        *generated = (struct generated){tokens, cap};
    }
    generated->tokens[i] = token;
    return 0;
}

void token_ids_forget(struct token_ids *ids, uint64_t serial)
{
    ifl_assert(serial < ids->n_requests);
    free(ids->of[serial].tokens);
    ids->of[serial] = (struct generated){0};
}
