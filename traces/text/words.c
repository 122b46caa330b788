/* The words of a model of SentencePiece of the kind BPE: its library merges the pair of pieces
 * that makes the piece with the best score, the leftmost of several (Kudo and Richardson 2018,
 * bpe_model.cc of 0.1.97). With scores that fall from id to id this is the merging of ranks by ids.
 */
#include "text/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLANK_BYTES = sizeof TEXT_BLANK - 1 };

/* Pieces of blanks alone: Llama 2's and Mistral's have one score, below all others. */
struct runs {
    uint32_t id[TEXT_MAX_TOKEN_BYTES / 3 + 1]; /* by how many blanks they have; TEXT_NO_ID: none */
    double highest, lowest;                    /* of those with two and more */
};

static bool is_blanks(const char *piece, size_t n)
{
    for (size_t i = 0; i < n; i += BLANK_BYTES)
        if (n - i < BLANK_BYTES || memcmp(piece + i, TEXT_BLANK, BLANK_BYTES) != 0)
            return false;
    return n > BLANK_BYTES;
}

static void add_run(struct runs *runs, int id, size_t n_bytes, double score)
{
    runs->id[n_bytes / (BLANK_BYTES)] = (uint32_t)id;
    runs->highest = fmax(runs->highest, score);
    runs->lowest = fmin(runs->lowest, score);
}

static size_t n_letters(const char *piece, size_t n)
{
    size_t n_begun = 0;
    for (size_t i = 0; i < n; i++)
        n_begun += ((unsigned char)piece[i] & 0xc0) != 0x80;
    return n_begun;
}

/* 1: the piece is no text, or takes its place in the order. 0: the order is another one. */
static int add_piece(struct ifl_tokenizer *tokenizer, int id, double *last, struct runs *runs,
                     struct ifl_error *error)
{
    const struct text_sentencepiece *library = tokenizer->sentencepiece;
    size_t n;
    const char *piece = text_sentencepiece_piece(library, id, &n);
    const double score = text_sentencepiece_score(library, id);
    if (text_sentencepiece_is_unused(library, id) || n >= TEXT_MAX_TOKEN_BYTES)
        return 0;
    if (text_sentencepiece_kind(library, id) != TEXT_PIECE_TEXT)
        return 1;
    if (is_blanks(piece, n)) {
        add_run(runs, id, n, score);
        return 1;
    }
    if (n_letters(piece, n) > 1) {
        if (score >= *last)
            return 0;
        *last = score;
    }
    const int rc = text_vocab_add(&tokenizer->vocab, piece, n, (uint32_t)id, error);
    return rc < 0 ? rc : 1;
}

/* Two runs that are a piece together merge behind everything else, the leftmost first. Where their
 * scores say otherwise, words with two blanks are the library's. */
static int add_runs(struct ifl_tokenizer *tokenizer, struct runs *runs, double last,
                    struct ifl_error *error)
{
    const size_t n = sizeof runs->id / sizeof *runs->id;
    const bool any = runs->highest >= runs->lowest;
    int rc = 0;
    tokenizer->merges_blanks = !any || (runs->highest == runs->lowest && runs->lowest < last);
    runs->id[1] = tokenizer->blank;
    for (size_t both = 2; tokenizer->merges_blanks && rc == 0 && both < n; both++)
        for (size_t left = 1; runs->id[both] != TEXT_NO_ID && rc == 0 && left < both; left++)
            if (runs->id[left] != TEXT_NO_ID && runs->id[both - left] != TEXT_NO_ID)
                rc = text_merges_add(&tokenizer->merges, runs->id[left], runs->id[both - left],
                                     TEXT_MAX_IDS, runs->id[both], error);
    return rc;
}

/* ---- blanks, tabs and line feeds within a word ---- */

enum { MOST_PROBED = 64 };

struct taken {
    uint32_t ids[MOST_PROBED];
    size_t n;
};

static int take(void *self, const int *ids, size_t n)
{
    struct taken *taken = self;
    for (size_t i = 0; i < n && taken->n < MOST_PROBED; i++)
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

/* A letter that is no piece is an id of its own between two others: a byte. */
static void read_byte(struct ifl_tokenizer *tokenizer, char letter)
{
    const char text[] = {'a', letter, 'a', '\0'};
    struct taken taken = {0};
    uint32_t *id = &tokenizer->vocab.id_of_byte[(unsigned char)letter];
    *id = text_vocab_find(&tokenizer->vocab, &letter, 1);
    if (*id == TEXT_NO_ID &&
        text_sentencepiece_encode(tokenizer->sentencepiece, text, 3, take, &taken) == 0 &&
        taken.n == 3)
        *id = taken.ids[1];
}

/* Runs of blanks before, between and behind two letters. */
static int agree_on_runs(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer,
                         struct ifl_error *error)
{
    char text[MOST_PROBED];
    int rc = 1;
    for (int n = 2; rc > 0 && tokenizer->merges_blanks && n <= 40; n++)
        for (int before = 0; rc > 0 && before <= n; before += n / 2) {
            snprintf(text, sizeof text, "%*sa%*sa", before, "", n - before, "");
            rc = agree(bpe, tokenizer, text, error);
        }
    return rc;
}

/* What line feeds, tabs and blanks stand for where the library neither joins nor drops them:
 * letters of a word, too, so that lines need not be taken apart by it. */
static int read_spaces(struct ifl_tokenizer *tokenizer, struct ifl_error *error)
{
    static const char *const probes[] = {"a\na", "a\n\na", "a\n a", "a \na",    "a\n", "a ", "\na",
                                         "a\ta", "a\t a",  "a \ta", "a\t\n\ta", "a\t", "\ta"};
    uint32_t *const letters = tokenizer->vocab.id_of_byte;
    struct text_bpe bpe;
    int rc = text_bpe_open(&bpe, error) < 0 ? error->code : 1;
    read_byte(tokenizer, '\n');
    read_byte(tokenizer, '\t');
    letters[' '] = tokenizer->blank;
    for (size_t i = 0; rc > 0 && i < sizeof probes / sizeof *probes; i++)
        rc = agree(&bpe, tokenizer, probes[i], error);
    if (rc > 0)
        rc = agree_on_runs(&bpe, tokenizer, error);
    if (rc <= 0) {
        letters['\n'] = letters['\t'] = letters[' '] = TEXT_NO_ID;
        tokenizer->merges_blanks = false;
    }
    text_bpe_close(&bpe);
    return rc < 0 ? rc : 0;
}

int text_read_pieces(struct ifl_tokenizer *tokenizer, struct ifl_error *error)
{
    const int n = text_sentencepiece_n(tokenizer->sentencepiece);
    struct runs runs = {.highest = -HUGE_VAL, .lowest = HUGE_VAL};
    double last = 1;
    int rc = text_sentencepiece_keeps_ascii(tokenizer->sentencepiece);
    memset(runs.id, 0xff, sizeof runs.id);
    for (int id = 0; rc > 0 && id < n; id++)
        rc = add_piece(tokenizer, id, &last, &runs, error);
    if (rc <= 0)
        return rc;
    for (unsigned byte = 0; byte < 256; byte++) {
        const char letter = (char)byte;
        tokenizer->vocab.id_of_byte[byte] =
            byte > ' ' && byte < 0x7f ? text_vocab_find(&tokenizer->vocab, &letter, 1) : TEXT_NO_ID;
    }
    tokenizer->blank = text_vocab_find(&tokenizer->vocab, TEXT_BLANK, BLANK_BYTES);
    rc = text_merges_of_ranks(&tokenizer->merges, &tokenizer->vocab, error);
    tokenizer->by_merges = rc == 0 && tokenizer->blank != TEXT_NO_ID;
    if (tokenizer->by_merges)
        rc = add_runs(tokenizer, &runs, last, error);
    return rc == 0 ? read_spaces(tokenizer, error) : rc;
}
