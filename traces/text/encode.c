/* A text to ids. */
#include "text/text.h"

#include <string.h>

#include "inflight/minmax.h"

struct ifl_encoder {
    const struct ifl_tokenizer *tokenizer;
    struct text_matcher matcher;
    struct text_bpe bpe;
    struct text_unigram_room unigram;
    struct text_ids ids;
    char *prefixed; /* [cap_prefixed] a piece with a blank before it */
    size_t cap_prefixed;
    struct text_words *words; /* of make_text.c */
};

int ifl_encoder_open(const struct ifl_tokenizer *tokenizer, struct ifl_encoder **encoder,
                     struct ifl_error *error)
{
    struct ifl_encoder *e = calloc(1, sizeof *e);
    *encoder = NULL;
    if (!e)
        return ifl_fail_nomem(error);
    e->tokenizer = tokenizer;
    if (text_matcher_open(&e->matcher, error) < 0 || text_bpe_open(&e->bpe, error) < 0) {
        ifl_encoder_close(e);
        return error->code;
    }
    *encoder = e;
    return 0;
}

void ifl_encoder_close(struct ifl_encoder *encoder)
{
    if (!encoder)
        return;
    text_matcher_close(&encoder->matcher);
    text_bpe_close(&encoder->bpe);
    free(encoder->unigram.best);
    free(encoder->unigram.normal);
    free(encoder->ids.of);
    free(encoder->prefixed);
    free(encoder->words);
    free(encoder);
}

/* ---- pieces ---- */

static int pass_stage(struct ifl_encoder *e, size_t stage, const char *text, size_t n,
                      struct ifl_error *error);

/* Hands a piece to the stages behind this one, the last of which is the model. */
static int pass_on(struct ifl_encoder *e, size_t stage, const char *text, size_t n,
                   struct ifl_error *error)
{
    if (n == 0)
        return 0;
    if (stage < e->tokenizer->n_stages)
        return pass_stage(e, stage, text, n, error);
    return text_bpe_word(&e->bpe, e->tokenizer, text, n, &e->ids, error);
}

static int pass_prefixed(struct ifl_encoder *e, size_t stage, const char *text, size_t n,
                         struct ifl_error *error)
{
    if (text[0] == ' ')
        return pass_on(e, stage + 1, text, n, error);
    if (trace_reserve(&e->prefixed, &e->cap_prefixed, n + 1, 1, error) < 0)
        return error->code;
    e->prefixed[0] = ' ';
    memcpy(e->prefixed + 1, text, n);
    return pass_on(e, stage + 1, e->prefixed, n + 1, error);
}

static int pass_stage(struct ifl_encoder *e, size_t stage, const char *text, size_t n,
                      struct ifl_error *error)
{
    const struct text_stage *by = &e->tokenizer->stages[stage];
    size_t from = 0, begin, end;
    int rc;
    if (by->kind == TEXT_PREFIX)
        return pass_prefixed(e, stage, text, n, error);
    while ((rc = text_match(&e->matcher, by->code, text, n, from, &begin, &end, error)) > 0) {
        if (by->kind != TEXT_KEEP)
            rc = pass_on(e, stage + 1, text + from, begin - from, error);
        if (rc >= 0 && by->kind != TEXT_REMOVE)
            rc = pass_on(e, stage + 1, text + begin, end - begin, error);
        if (rc < 0)
            return rc;
        from = end;
        if (from == n)
            return 0;
    }
    return rc < 0 || by->kind == TEXT_KEEP ? rc
                                           : pass_on(e, stage + 1, text + from, n - from, error);
}

/* ---- normalising ---- */

static bool is_ascii(const char *text, size_t n)
{
    uint64_t part, all = 0;
    for (; n >= sizeof part; text += sizeof part, n -= sizeof part) {
        memcpy(&part, text, sizeof part);
        all |= part;
    }
    part = 0;
    memcpy(&part, text, n);
    return ((all | part) & 0x8080808080808080u) == 0;
}

int text_normal(const struct ifl_tokenizer *tokenizer, const char *text, size_t n, char **normal,
                size_t *n_normal, struct ifl_error *error)
{
    if (tokenizer->nfc != TEXT_NO_NFC && !is_ascii(text, n))
        return text_nfc(text, n, tokenizer->nfc, normal, n_normal, error);
    *normal = (char *)(uintptr_t)text;
    *n_normal = n;
    return 0;
}

/* ---- added tokens ---- */

typedef int piece_fn(struct ifl_encoder *e, const char *text, size_t n, struct ifl_error *error);

static bool is_blank(const char *text, const char *end, int step)
{
    static const char *const wide[] = {"\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                       "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
    const size_t n = (size_t)(end - text);
    if (step == 1)
        return n >= 1 && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r'));
    if (step == 2)
        return n >= 2 && (memcmp(text, "\xc2\x85", 2) == 0 || memcmp(text, "\xc2\xa0", 2) == 0);
    if (n < 3)
        return false;
    bool found = memcmp(text, "\xe2\x80", 2) == 0 && (unsigned char)text[2] <= 0x8a;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        found = found || memcmp(text, wide[i], 3) == 0;
    return found;
}

/* The bytes of the blank (White_Space) that ends, or begins, at `at`; 0: none does. */
static size_t blank_before(const char *text, size_t at, size_t least)
{
    for (int step = 1; step <= 3; step++)
        if (at >= least + (size_t)step && is_blank(text + at - step, text + at, step))
            return (size_t)step;
    return 0;
}

static size_t blank_behind(const char *text, size_t at, size_t n)
{
    for (int step = 1; step <= 3; step++)
        if (is_blank(text + at, text + n, step))
            return (size_t)step;
    return 0;
}

/* Cuts the added tokens out, hands what is between them to `take`. */
static int cut_added(struct ifl_encoder *e, const struct text_added *added, const char *text,
                     size_t n, piece_fn *take, struct ifl_error *error)
{
    size_t done = 0, from = 0, begin, end;
    int rc = 0;
    while (added->code && from < n &&
           (rc = text_match(&e->matcher, added->code, text, n, from, &begin, &end, error)) > 0) {
        const struct text_added_token *token =
            &added->tokens[text_vocab_find(&added->of, text + begin, end - begin)];
        from = end;
        for (size_t blank = 1; token->lstrip && blank > 0; begin -= blank)
            blank = blank_before(text, begin, done);
        for (size_t blank = 1; token->rstrip && blank > 0; end += blank)
            blank = blank_behind(text, end, n);
        rc = done < begin ? take(e, text + done, begin - done, error) : 0;
        if (rc == 0)
            rc = trace_reserve(&e->ids.of, &e->ids.cap, e->ids.n + 1, sizeof *e->ids.of, error);
        if (rc < 0)
            return rc;
        e->ids.of[e->ids.n++] = token->id;
        done = end;
    }
    if (rc < 0)
        return rc;
    return done < n ? take(e, text + done, n - done, error) : 0;
}

static int take_normal(struct ifl_encoder *e, const char *text, size_t n, struct ifl_error *error)
{
    return pass_on(e, 0, text, n, error);
}

static int take_raw(struct ifl_encoder *e, const char *text, size_t n, struct ifl_error *error)
{
    char *normal;
    size_t n_normal;
    int rc = text_normal(e->tokenizer, text, n, &normal, &n_normal, error);
    if (rc < 0)
        return rc;
    rc = cut_added(e, &e->tokenizer->added_normalized, normal, n_normal, take_normal, error);
    if (normal != text)
        free(normal);
    return rc;
}

/* ---- SentencePiece ---- */

struct library_ids {
    struct ifl_encoder *encoder;
    struct ifl_error *error;
};

static int take_library_ids(void *self, const int *ids, size_t n)
{
    const struct library_ids *to = self;
    struct text_ids *own = &to->encoder->ids;
    if (trace_reserve(&own->of, &own->cap, own->n + n, sizeof *own->of, to->error) < 0)
        return -2;
    for (size_t i = 0; i < n; i++)
        own->of[own->n++] = (uint32_t)ids[i];
    return 0;
}

static int ask_library(struct ifl_encoder *e, const char *text, size_t n, struct ifl_error *error)
{
    struct library_ids to = {e, error};
    const int rc =
        text_sentencepiece_encode(e->tokenizer->sentencepiece, text, n, take_library_ids, &to);
    if (rc == -2)
        return error->code;
    return rc == 0 ? 0 : ifl_fail(error, IFL_E_INPUT, "SentencePiece cannot encode the text");
}

/* Letters that no normaliser of the library changes, nor what stands beside them by them: those
 * that are seen, and blanks and line feeds where words.c found that they are kept. */
static bool is_kept(const struct ifl_tokenizer *tokenizer, char letter)
{
    return text_is_seen(letter) ||
           ((letter == ' ' || letter == '\n') && tokenizer->vocab.id_of_byte[' '] != TEXT_NO_ID);
}

/* The end of the words from `at` on that belong together: the first blank between two such letters.
 */
static size_t end_of_words(const struct ifl_tokenizer *tokenizer, const char *text, size_t at,
                           size_t n)
{
    for (size_t i = at + 1; i + 1 < n; i++)
        if (text[i] == ' ' && text[i - 1] != ' ' && is_kept(tokenizer, text[i - 1]) &&
            is_kept(tokenizer, text[i + 1]))
            return i;
    return n;
}

static int encode_words(struct ifl_encoder *e, const char *text, size_t n, struct ifl_error *error)
{
    const uint32_t *known;
    size_t n_known, end;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < n; at = end + 1) {
        end = end_of_words(e->tokenizer, text, at, n);
        if (text_bpe_known(&e->bpe, text + at, end - at, &known, &n_known)) {
            rc = text_ids_append(&e->ids, known, n_known, error);
            continue;
        }
        const size_t before = e->ids.n;
        rc = e->tokenizer->by_merges
                 ? text_bpe_letters(&e->bpe, e->tokenizer, text + at, end - at, &e->ids, error)
                 : 0;
        if (rc != 0) {
            rc = rc < 0 ? rc : 0;
            continue;
        }
        rc = ask_library(e, text + at, end - at, error);
        if (rc == 0)
            text_bpe_keep(&e->bpe, text + at, end - at, e->ids.of + before, e->ids.n - before);
    }
    return rc;
}

static int encode_by_library(struct ifl_encoder *e, const char *text, size_t n,
                             struct ifl_error *error)
{
    if (e->tokenizer->by_words)
        return encode_words(e, text, n, error);
    const int rc = e->tokenizer->unigram
                       ? text_unigram_encode(e->tokenizer, &e->unigram, text, n, &e->ids, error)
                       : 0;
    return rc == 0 ? ask_library(e, text, n, error) : ifl_min(rc, 0);
}

/* ---- both ---- */

int ifl_encode(struct ifl_encoder *encoder, const char *text, size_t n_bytes, const uint32_t **ids,
               size_t *n_ids, struct ifl_error *error)
{
    const struct ifl_tokenizer *tokenizer = encoder->tokenizer;
    int rc = 0;
    encoder->ids.n = 0;
    if (n_bytes >= TEXT_MAX_BYTES)
        return ifl_fail(error, IFL_E_INPUT, "a text of %zu bytes, expected less than %d", n_bytes,
                        TEXT_MAX_BYTES);
    if (!is_ascii(text, n_bytes))
        rc = text_check_utf8(&encoder->matcher, tokenizer->any, text, n_bytes, error);
    if (rc == 0 && tokenizer->sentencepiece)
        rc = encode_by_library(encoder, text, n_bytes, error);
    else if (rc == 0)
        rc = cut_added(encoder, &tokenizer->added, text, n_bytes, take_raw, error);
    for (size_t i = 0; rc == 0 && tokenizer->shift > 0 && i < encoder->ids.n; i++)
        encoder->ids.of[i] += tokenizer->shift;
    *ids = encoder->ids.of;
    *n_ids = rc == 0 ? encoder->ids.n : 0;
    return rc;
}

const struct ifl_tokenizer *text_tokenizer_of(const struct ifl_encoder *encoder)
{
    return encoder->tokenizer;
}

struct text_words **text_words_of(struct ifl_encoder *encoder)
{
    return &encoder->words;
}
