/* Texts of an exact number of tokens. Words that are one token each, with the blank in front of
 * them, stay so whatever stands before and behind: splits and SentencePiece's pieces end at blanks.
 * What is made is encoded all the same. */
#include "text/text.h"

#include <string.h>

#include "inflight/random.h"

enum { MOST_WORDS = 4096, MAX_WORD_BYTES = 24, FEWEST_WORDS = 2 };

struct text_words {
    char of[MOST_WORDS][MAX_WORD_BYTES]; /* without the blank */
    uint32_t ids[MOST_WORDS];
    size_t n;
    bool blank_first; /* the first word of a text needs one of its own */
};

static bool is_word(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] < 'a' || text[i] > 'z')
            return false;
    return n >= 2 && n < MAX_WORD_BYTES;
}

/* Takes the word if a text of it twice is two tokens, the second of which is alike with and without
 * a third. */
static int try_word(struct ifl_encoder *encoder, const char *word, size_t n,
                    struct text_words *words, struct ifl_error *error)
{
    char text[4 * MAX_WORD_BYTES];
    const uint32_t *ids;
    size_t n_ids;
    if (!is_word(word, n) || words->n == MOST_WORDS)
        return 0;
    const int n_text =
        snprintf(text, sizeof text, " %.*s %.*s %.*s", (int)n, word, (int)n, word, (int)n, word);
    const int from = words->blank_first ? 0 : 1;
    const int rc = ifl_encode(encoder, text + from, (size_t)(n_text - from), &ids, &n_ids, error);
    if (rc == 0 && n_ids == 3 && ids[0] == ids[1] && ids[1] == ids[2]) {
        memcpy(words->of[words->n], word, n);
        words->ids[words->n] = ids[1];
        words->of[words->n++][n] = '\0';
    }
    return rc;
}

static int find_words(struct ifl_encoder *encoder, struct text_words *words,
                      struct ifl_error *error)
{
    const struct ifl_tokenizer *tokenizer = text_tokenizer_of(encoder);
    const struct text_sentencepiece *library = tokenizer->sentencepiece;
    const size_t n = library ? (size_t)text_sentencepiece_n(library) : tokenizer->vocab.n;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        size_t n_bytes = 0;
        const struct text_token *token = library ? NULL : &tokenizer->vocab.tokens[i];
        const char *bytes = library ? text_sentencepiece_piece(library, (int)i, &n_bytes)
                                    : tokenizer->vocab.bytes + token->at;
        if (library && n_bytes > 3 && memcmp(bytes, TEXT_BLANK, 3) == 0)
            rc = try_word(encoder, bytes + 3, n_bytes - 3, words, error);
        else if (!library && token->n_bytes > 1 && bytes[0] == ' ')
            rc = try_word(encoder, bytes + 1, token->n_bytes - 1, words, error);
    }
    return rc;
}

/* The text has a blank in front of each word but, for SentencePiece, the first, which gets its
 * blank there. */
static char *put_together(const struct text_words *words, size_t n_tokens, uint64_t seed)
{
    char *text = malloc(n_tokens * MAX_WORD_BYTES + 1), *at = text;
    for (size_t i = 0; text && i < n_tokens; i++) {
        const char *word = words->of[ifl_draw(seed, IFL_DRAW_TEXT_WORD, i, 0) % words->n];
        const size_t n = strlen(word);
        if (i > 0 || words->blank_first)
            *at++ = ' ';
        memcpy(at, word, n);
        at += n;
    }
    if (text)
        *at = '\0';
    return text;
}

/* 1: the text has n_tokens tokens. 0: it does not. */
static int verify(struct ifl_encoder *encoder, const char *text, size_t n_tokens,
                  struct ifl_error *error)
{
    const uint32_t *ids;
    size_t n_ids;
    const int rc = ifl_encode(encoder, text, strlen(text), &ids, &n_ids, error);
    return rc < 0 ? rc : n_ids == n_tokens;
}

/* Those of the encoder, found at its first text. Most models of SentencePiece put a blank before a
 * text themselves. */
static int words_of(struct ifl_encoder *encoder, struct text_words **words, struct ifl_error *error)
{
    struct text_words **kept = text_words_of(encoder);
    *words = *kept;
    if (*kept)
        return 0;
    struct text_words *found = calloc(1, sizeof *found);
    int rc = found ? 0 : ifl_fail_nomem(error);
    for (int try = 0; rc == 0 && try < 2 && found->n < FEWEST_WORDS; try++) {
        found->n = 0;
        found->blank_first = (text_tokenizer_of(encoder)->sentencepiece != NULL) == (try == 1);
        rc = find_words(encoder, found, error);
    }
    if (rc == 0 && found->n < FEWEST_WORDS)
        rc = ifl_fail(error, IFL_E_INPUT,
                      "the tokenizer has %zu words of small letters, expected at least %d to make "
                      "texts of",
                      found->n, FEWEST_WORDS);
    if (rc < 0)
        free(found);
    else
        *words = *kept = found;
    return rc;
}

int ifl_encoder_make_text(struct ifl_encoder *encoder, size_t n_tokens, uint64_t seed, char **text,
                          struct ifl_error *error)
{
    struct text_words *words;
    *text = NULL;
    int rc = words_of(encoder, &words, error);
    if (rc < 0)
        return rc;
    *text = put_together(words, n_tokens, seed);
    rc = *text ? verify(encoder, *text, n_tokens, error) : ifl_fail_nomem(error);
    if (rc > 0)
        return 0;
    free(*text);
    *text = NULL;
    return rc < 0 ? rc
                  : ifl_fail(error, IFL_E_INPUT,
                             "the tokenizer's words do not stay tokens next to each other");
}

int ifl_encoder_words(struct ifl_encoder *encoder, const uint32_t **ids, size_t *n_ids,
                      struct ifl_error *error)
{
    struct text_words *words;
    *n_ids = 0;
    const int rc = words_of(encoder, &words, error);
    if (rc < 0)
        return rc;
    *ids = words->ids;
    *n_ids = words->n;
    return 0;
}
