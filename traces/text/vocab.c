/* A vocabulary: an open hash table of tokens by their bytes. */
#include "text/text.h"

#include <string.h>

uint64_t text_hash(const char *bytes, size_t n_bytes)
{
    const uint64_t multiplier = 0x9e3779b97f4a7c15u; /* Knuth's: 2^64 / golden ratio */
    uint64_t hash = n_bytes * multiplier, part;
    for (; n_bytes >= sizeof part; bytes += sizeof part, n_bytes -= sizeof part) {
        memcpy(&part, bytes, sizeof part);
        hash = (hash ^ part) * multiplier;
        hash ^= hash >> 32;
    }
    part = 0;
    memcpy(&part, bytes, n_bytes);
    hash = (hash ^ part) * multiplier;
    hash ^= hash >> 29;
    hash *= 0xbf58476d1ce4e5b9u; /* of SplitMix64's finaliser */
    return hash ^ (hash >> 32);
}

static size_t slot_of(const struct text_vocab *vocab, const char *bytes, size_t n_bytes)
{
    size_t slot = text_hash(bytes, n_bytes) & (vocab->n_slots - 1);
    while (vocab->slots[slot]) {
        const struct text_token *token = &vocab->tokens[vocab->slots[slot] - 1];
        if (token->n_bytes == n_bytes && memcmp(vocab->bytes + token->at, bytes, n_bytes) == 0)
            break;
        slot = (slot + 1) & (vocab->n_slots - 1);
    }
    return slot;
}

static int make_slots(struct text_vocab *vocab, size_t n_slots, struct ifl_error *error)
{
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return ifl_fail_nomem(error);
    free(vocab->slots);
    vocab->slots = slots;
    vocab->n_slots = n_slots;
    for (size_t i = 0; i < vocab->n; i++) {
        const struct text_token *token = &vocab->tokens[i];
        slots[slot_of(vocab, vocab->bytes + token->at, token->n_bytes)] = (uint32_t)i + 1;
    }
    return 0;
}

static int make_room(struct text_vocab *vocab, size_t n_bytes, struct ifl_error *error)
{
    if (2 * (vocab->n + 1) > vocab->n_slots &&
        make_slots(vocab, vocab->n_slots ? 2 * vocab->n_slots : 1024, error) < 0)
        return error->code;
    const int rc =
        trace_reserve(&vocab->tokens, &vocab->cap, vocab->n + 1, sizeof *vocab->tokens, error);
    return rc < 0 ? rc
                  : trace_reserve(&vocab->bytes, &vocab->cap_bytes, vocab->n_bytes + n_bytes, 1,
                                  error);
}

int text_vocab_add(struct text_vocab *vocab, const char *bytes, size_t n_bytes, uint32_t id,
                   struct ifl_error *error)
{
    const int rc = make_room(vocab, n_bytes, error);
    if (rc < 0)
        return rc;
    const size_t slot = slot_of(vocab, bytes, n_bytes);
    if (vocab->slots[slot]) {
        vocab->tokens[vocab->slots[slot] - 1].id = id;
        return 0;
    }
    memcpy(vocab->bytes + vocab->n_bytes, bytes, n_bytes);
    vocab->tokens[vocab->n++] = (struct text_token){vocab->n_bytes, (uint32_t)n_bytes, id};
    vocab->n_bytes += n_bytes;
    vocab->slots[slot] = (uint32_t)vocab->n;
    return 0;
}

uint32_t text_vocab_find(const struct text_vocab *vocab, const char *bytes, size_t n_bytes)
{
    if (vocab->n == 0)
        return TEXT_NO_ID;
    const uint32_t found = vocab->slots[slot_of(vocab, bytes, n_bytes)];
    return found ? vocab->tokens[found - 1].id : TEXT_NO_ID;
}

int text_vocab_end(struct text_vocab *vocab, unsigned *missing)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const char letter = (char)byte;
        vocab->id_of_byte[byte] = text_vocab_find(vocab, &letter, 1);
        if (vocab->id_of_byte[byte] == TEXT_NO_ID) {
            *missing = byte;
            return 1;
        }
    }
    return 0;
}

void text_vocab_free(struct text_vocab *vocab)
{
    free(vocab->bytes);
    free(vocab->tokens);
    free(vocab->slots);
    *vocab = (struct text_vocab){0};
}
