#include "live/serve_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "inflight/random.h"
#include "live/source.h"

enum { PIECE_BYTES = 4 };

static const char consonants[] = "bcdfghjklmnpqrstvwxyz", vowels[] = "aeiou";
enum { N_CONSONANTS = sizeof consonants - 1, N_VOWELS = sizeof vowels - 1 };
_Static_assert((int)N_CONSONANTS *N_VOWELS *N_CONSONANTS == SOURCE_VOCABULARY, "words");

void tokens_free(struct tokens *tokens)
{
    free(tokens->of);
    *tokens = (struct tokens){0};
}

int tokens_add(struct tokens *tokens, int32_t token)
{
    if (array_room(&tokens->of, tokens->n, &tokens->cap, 64, sizeof *tokens->of) < 0)
        return IFL_E_NOMEM;
    tokens->of[tokens->n++] = token;
    return 0;
}

static int32_t place_in(const char *letters, char letter)
{
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? (int32_t)(at - letters) : -1;
}

/* The word's number, or one behind all words. */
static int32_t number_of(const char piece[PIECE_BYTES])
{
    const int32_t a = place_in(consonants, piece[1]), b = place_in(vowels, piece[2]),
                  c = place_in(consonants, piece[3]);
    uint32_t bytes;
    if (piece[0] == ' ' && a >= 0 && b >= 0 && c >= 0)
        return (a * N_VOWELS + b) * N_CONSONANTS + c;
    memcpy(&bytes, piece, sizeof bytes);
    return SOURCE_VOCABULARY + (int32_t)(ifl_mix(bytes) % (INT32_MAX - SOURCE_VOCABULARY));
}

void token_text(int32_t token, char text[TOKEN_TEXT_BYTES])
{
    const int32_t word = token % SOURCE_VOCABULARY;
    text[0] = ' ';
    text[1] = consonants[word / N_CONSONANTS / N_VOWELS];
    text[2] = vowels[word / N_CONSONANTS % N_VOWELS];
    text[3] = consonants[word % N_CONSONANTS];
    text[4] = '\0';
}

int tokens_add_text(struct tokens *tokens, const char *text, size_t n_bytes)
{
    int rc = 0;
    for (size_t at = 0; at < n_bytes && rc == 0; at += PIECE_BYTES) {
        char piece[PIECE_BYTES] = {0};
        const size_t n = ifl_min(n_bytes - at, (size_t)PIECE_BYTES);
        memcpy(piece, text + at, n);
        rc = tokens_add(tokens, number_of(piece));
    }
    return rc;
}

int tokens_add_message(struct tokens *tokens, const char *role, const char *text, size_t n_bytes)
{
    char tag[PIECE_BYTES] = {'<', 0, 0, '>'};
    memcpy(tag + 1, role, strnlen(role, 2));
    int rc = tokens_add_text(tokens, tag, sizeof tag);
    if (rc == 0)
        rc = tokens_add_text(tokens, text, n_bytes);
    return rc == 0 ? tokens_add_text(tokens, "</>\n", PIECE_BYTES) : rc;
}

int tokens_add_turn(struct tokens *tokens)
{
    return tokens_add_text(tokens, "<as>", PIECE_BYTES);
}
