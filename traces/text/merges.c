/* Merges: an open hash table of pairs of ids. */
#include "text/text.h"

#include <string.h>

#include "inflight/random.h"

#define EMPTY UINT64_MAX

int text_merges_begin(struct text_merges *merges, size_t n_expected, struct ifl_error *error)
{
    *merges = (struct text_merges){.n_slots = 1024};
    while (merges->n_slots < 2 * n_expected)
        merges->n_slots *= 2;
    merges->slots = malloc(merges->n_slots * sizeof *merges->slots);
    if (!merges->slots)
        return ifl_fail_nomem(error);
    memset(merges->slots, 0xff, merges->n_slots * sizeof *merges->slots);
    return 0;
}

static struct text_merge *slot_of(const struct text_merges *merges, uint64_t pair)
{
    size_t slot = ifl_mix(pair) & (merges->n_slots - 1);
    while (merges->slots[slot].pair != EMPTY && merges->slots[slot].pair != pair)
        slot = (slot + 1) & (merges->n_slots - 1);
    return &merges->slots[slot];
}

static int grow(struct text_merges *merges, struct ifl_error *error)
{
    struct text_merges larger;
    const int rc = text_merges_begin(&larger, merges->n_slots, error);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < merges->n_slots; i++)
        if (merges->slots[i].pair != EMPTY)
            *slot_of(&larger, merges->slots[i].pair) = merges->slots[i];
    larger.n = merges->n;
    free(merges->slots);
    *merges = larger;
    return 0;
}

int text_merges_add(struct text_merges *merges, uint32_t left, uint32_t right, uint32_t rank,
                    uint32_t id, struct ifl_error *error)
{
    const uint64_t pair = (uint64_t)left << 32 | right;
    if (2 * (merges->n + 1) > merges->n_slots && grow(merges, error) < 0)
        return error->code;
    struct text_merge *slot = slot_of(merges, pair);
    merges->n += slot->pair == EMPTY;
    *slot = (struct text_merge){pair, rank, id};
    return 0;
}

int text_merges_of_ranks(struct text_merges *merges, const struct text_vocab *vocab,
                         struct ifl_error *error)
{
    int rc = text_merges_begin(merges, 2 * vocab->n, error);
    for (size_t i = 0; rc == 0 && i < vocab->n; i++) {
        const struct text_token *token = &vocab->tokens[i];
        const char *bytes = vocab->bytes + token->at;
        for (size_t cut = 1; rc == 0 && cut < token->n_bytes; cut++) {
            const uint32_t left = text_vocab_find(vocab, bytes, cut);
            if (left == TEXT_NO_ID)
                continue;
            const uint32_t right = text_vocab_find(vocab, bytes + cut, token->n_bytes - cut);
            if (right != TEXT_NO_ID)
                rc = text_merges_add(merges, left, right, token->id, token->id, error);
        }
    }
    return rc;
}

const struct text_merge *text_merges_find(const struct text_merges *merges, uint32_t left,
                                          uint32_t right)
{
    const struct text_merge *slot = slot_of(merges, (uint64_t)left << 32 | right);
    return slot->pair == EMPTY ? NULL : slot;
}

void text_merges_free(struct text_merges *merges)
{
    free(merges->slots);
    *merges = (struct text_merges){0};
}
