/* The words of a model of SentencePiece of the kind BPE: its library merges the pair of pieces
 * that makes the piece with the best score, the leftmost of several (Kudo and Richardson 2018,
 * bpe_model.cc of 0.1.97). With scores that fall from id to id this is the merging of ranks by ids.
 */
#include "text/text.h"

#include <stdlib.h>
#include <string.h>

static const char blank[] = "\xe2\x96\x81"; /* U+2581 */

/* Of blanks alone: no word has two of them, and their scores are of another order. */
static bool is_blanks(const char *piece, size_t n)
{
    for (size_t i = 0; i < n; i += sizeof blank - 1)
        if (n - i < sizeof blank - 1 || memcmp(piece + i, blank, sizeof blank - 1) != 0)
            return false;
    return n > sizeof blank - 1;
}

static size_t n_letters(const char *piece, size_t n)
{
    size_t n_begun = 0;
    for (size_t i = 0; i < n; i++)
        n_begun += ((unsigned char)piece[i] & 0xc0) != 0x80;
    return n_begun;
}

/* 1: the piece is no text, or takes its place in the order. 0: the order is another one. */
static int add_piece(struct ifl_tokenizer *tokenizer, int id, double *last, struct ifl_error *error)
{
    const struct text_sentencepiece *library = tokenizer->sentencepiece;
    size_t n;
    const char *piece = text_sentencepiece_piece(library, id, &n);
    if (text_sentencepiece_is_unused(library, id))
        return 0;
    if (text_sentencepiece_kind(library, id) != TEXT_PIECE_TEXT || is_blanks(piece, n))
        return 1;
    if (n_letters(piece, n) > 1) {
        const double score = text_sentencepiece_score(library, id);
        if (score >= *last)
            return 0;
        *last = score;
    }
    const int rc = text_vocab_add(&tokenizer->vocab, piece, n, (uint32_t)id, error);
    return rc < 0 ? rc : 1;
}

/* ---- line feeds and blanks within a word ---- */

struct taken {
    uint32_t ids[16];
    size_t n;
};

static int take(void *self, const int *ids, size_t n)
{
    struct taken *taken = self;
    for (size_t i = 0; i < n && taken->n < 16; i++)
        taken->ids[taken->n++] = (uint32_t)ids[i];
    return 0;
}

/* 1: the text has the same ids by merges and by the library. */
static int agree(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer, const char *text,
                 struct ifl_error *error)
{
    struct taken taken = {0};
    struct text_ids ids = {0};
    int rc = text_bpe_letters(bpe, tokenizer, text, strlen(text), &ids, error);
    if (rc > 0)
        rc = text_sentencepiece_encode(tokenizer->sentencepiece, text, strlen(text), take,
                                       &taken) == 0 &&
             taken.n == ids.n && memcmp(taken.ids, ids.of, ids.n * sizeof *ids.of) == 0;
    free(ids.of);
    return rc;
}

/* What a line feed and a blank stand for where the library neither joins nor drops them: letters
 * of a word, too, so that lines need not be taken apart by it. */
static int read_spaces(struct ifl_tokenizer *tokenizer, struct ifl_error *error)
{
    static const char *const probes[] = {"a\na", "a\n\na", "a\n a", "a \na", "a\n", "a "};
    uint32_t *const letters = tokenizer->vocab.id_of_byte;
    struct taken taken = {0};
    struct text_bpe bpe;
    int rc = text_bpe_open(&bpe, error);
    if (rc == 0 &&
        text_sentencepiece_encode(tokenizer->sentencepiece, "a\na", 3, take, &taken) == 0 &&
        taken.n == 3 && text_vocab_find(&tokenizer->vocab, "\n", 1) == TEXT_NO_ID) {
        letters['\n'] = taken.ids[1];
        letters[' '] = tokenizer->blank;
        rc = 1;
    }
    for (size_t i = 0; rc > 0 && i < sizeof probes / sizeof *probes; i++)
        rc = agree(&bpe, tokenizer, probes[i], error);
    if (rc <= 0)
        letters['\n'] = letters[' '] = TEXT_NO_ID;
    text_bpe_close(&bpe);
    return rc < 0 ? rc : 0;
}

int text_read_pieces(struct ifl_tokenizer *tokenizer, struct ifl_error *error)
{
    const int n = text_sentencepiece_n(tokenizer->sentencepiece);
    double last = 1;
    int rc = tokenizer->by_words;
    for (int id = 0; rc > 0 && id < n; id++)
        rc = add_piece(tokenizer, id, &last, error);
    if (rc <= 0)
        return rc;
    for (unsigned byte = 0; byte < 256; byte++) {
        const char letter = (char)byte;
        tokenizer->vocab.id_of_byte[byte] =
            byte > ' ' && byte < 0x7f ? text_vocab_find(&tokenizer->vocab, &letter, 1) : TEXT_NO_ID;
    }
    tokenizer->blank = text_vocab_find(&tokenizer->vocab, blank, sizeof blank - 1);
    rc = text_merges_of_ranks(&tokenizer->merges, &tokenizer->vocab, error);
    tokenizer->by_merges = rc == 0 && tokenizer->blank != TEXT_NO_ID;
    return rc == 0 ? read_spaces(tokenizer, error) : rc;
}
