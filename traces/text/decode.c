/* Ids to texts: a table by id of what the vocabulary, the added tokens or SentencePiece's pieces
 * say. */
#include "text/text.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"

int text_extras_add(struct text_extras *extras, const char *bytes, size_t n_bytes, uint32_t id,
                    bool is_special, struct ifl_error *error)
{
    int rc = trace_reserve(&extras->of, &extras->cap, extras->n + 1, sizeof *extras->of, error);
    if (rc == 0)
        rc = trace_reserve(&extras->bytes, &extras->cap_bytes, extras->n_bytes + n_bytes + 1, 1,
                           error);
    if (rc < 0)
        return rc;
    memcpy(extras->bytes + extras->n_bytes, bytes, n_bytes);
    extras->of[extras->n++] =
        (struct text_extra){extras->n_bytes, (uint32_t)n_bytes, id, is_special};
    extras->n_bytes += n_bytes;
    return 0;
}

void text_extras_free(struct text_extras *extras)
{
    free(extras->bytes);
    free(extras->of);
    *extras = (struct text_extras){0};
}

struct ifl_decoder {
    struct ifl_token_text *of; /* [n] */
    size_t n;
    struct text_extras pieces; /* of SentencePiece */
    bool drops_blank;
};

static int make_table(struct ifl_decoder *decoder, size_t n, struct ifl_error *error)
{
    if (n > TEXT_MAX_IDS)
        return ifl_fail(error, IFL_E_INPUT, "the tokenizer has an id of %zu, expected less than %d",
                        n - 1, TEXT_MAX_IDS);
    decoder->of = calloc(n + 1, sizeof *decoder->of);
    decoder->n = n;
    return decoder->of ? 0 : ifl_fail_nomem(error);
}

static void put_extras(struct ifl_decoder *decoder, const struct text_extras *extras)
{
    for (size_t i = 0; i < extras->n; i++) {
        const struct text_extra *extra = &extras->of[i];
        decoder->of[extra->id] =
            (struct ifl_token_text){extras->bytes + extra->at, extra->n_bytes, extra->is_special};
    }
}

/* ---- of a vocabulary ---- */

static int put_vocab(struct ifl_decoder *decoder, const struct ifl_tokenizer *tokenizer,
                     struct ifl_error *error)
{
    const struct text_vocab *vocab = &tokenizer->vocab;
    const uint32_t shift = tokenizer->shift;
    size_t n = 0;
    for (size_t i = 0; i < vocab->n; i++)
        n = ifl_max(n, (size_t)vocab->tokens[i].id + shift + 1);
    for (size_t i = 0; i < tokenizer->extras.n; i++)
        n = ifl_max(n, (size_t)tokenizer->extras.of[i].id + 1);
    if (make_table(decoder, n, error) < 0)
        return error->code;
    for (size_t i = 0; i < vocab->n; i++) {
        const struct text_token *token = &vocab->tokens[i];
        decoder->of[token->id + shift] =
            (struct ifl_token_text){vocab->bytes + token->at, token->n_bytes, false, NULL, 0};
    }
    put_extras(decoder, &tokenizer->extras);
    return 0;
}

/* ---- of SentencePiece ---- */

size_t text_with_blanks(const char *piece, size_t n, char *text)
{
    size_t n_text = 0;
    for (size_t i = 0; i < n; n_text++)
        if (n - i >= 3 && memcmp(piece + i, TEXT_BLANK, 3) == 0) {
            text[n_text] = ' ';
            i += 3;
        } else {
            text[n_text] = piece[i++];
        }
    return n_text;
}

static int put_piece(struct ifl_decoder *decoder, const struct text_sentencepiece *library, int id,
                     struct ifl_error *error)
{
    static const char unknown[] = " \xe2\x81\x87 "; /* U+2047, as the library writes it */
    size_t n;
    const char *piece = text_sentencepiece_piece(library, id, &n);
    const enum text_piece kind = text_sentencepiece_kind(library, id);
    char text[TEXT_MAX_TOKEN_BYTES];
    if (kind == TEXT_PIECE_UNKNOWN)
        return text_extras_add(&decoder->pieces, unknown, sizeof unknown - 1, (uint32_t)id, false,
                               error);
    if (kind == TEXT_PIECE_BYTE && n == 6) { /* <0x0A> */
        text[0] = (char)strtoul(piece + 3, NULL, 16);
        n = 1;
    } else {
        n = kind == TEXT_PIECE_CONTROL ? 0 : text_with_blanks(piece, ifl_min(n, sizeof text), text);
    }
    return text_extras_add(&decoder->pieces, text, n, (uint32_t)id, kind == TEXT_PIECE_CONTROL,
                           error);
}

static int put_pieces(struct ifl_decoder *decoder, const struct text_sentencepiece *library,
                      struct ifl_error *error)
{
    const int n = text_sentencepiece_n(library);
    int rc = make_table(decoder, (size_t)n, error);
    for (int id = 0; rc == 0 && id < n; id++)
        rc = put_piece(decoder, library, id, error);
    if (rc < 0)
        return rc;
    put_extras(decoder, &decoder->pieces);
    for (int id = 0; id < n; id++)
        decoder->of[id].name = text_sentencepiece_piece(library, id, &decoder->of[id].n_name);
    decoder->drops_blank = text_sentencepiece_drops_blank(library);
    return 0;
}

/* ---- the decoder ---- */

int ifl_decoder_open(const struct ifl_tokenizer *tokenizer, struct ifl_decoder **decoder,
                     struct ifl_error *error)
{
    struct ifl_decoder *made = calloc(1, sizeof *made);
    *decoder = NULL;
    if (!made)
        return ifl_fail_nomem(error);
    const int rc = tokenizer->sentencepiece ? put_pieces(made, tokenizer->sentencepiece, error)
                                            : put_vocab(made, tokenizer, error);
    if (rc < 0) {
        ifl_decoder_close(made);
        return rc;
    }
    *decoder = made;
    return 0;
}

void ifl_decoder_close(struct ifl_decoder *decoder)
{
    if (!decoder)
        return;
    free(decoder->of);
    text_extras_free(&decoder->pieces);
    free(decoder);
}

struct ifl_token_text ifl_decoder_token(const struct ifl_decoder *decoder, uint32_t id)
{
    return id < decoder->n ? decoder->of[id] : (struct ifl_token_text){0};
}

bool ifl_decoder_drops_blank(const struct ifl_decoder *decoder)
{
    return decoder->drops_blank;
}
