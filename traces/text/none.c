/* Tokenizers, in a build without them. */
#include "text/count.h"

int ifl_tokenizer_open(const char *path, struct ifl_tokenizer **tokenizer, struct ifl_error *error)
{
    *tokenizer = NULL;
    return ifl_fail_at(error, path, 0, 0,
                       "this inflight was built without tokenizers (Meson's feature `tokenizers`, "
                       "which takes PCRE2, utf8proc and SentencePiece)");
}

void ifl_tokenizer_close(struct ifl_tokenizer *tokenizer)
{
    ifl_require(!tokenizer);
}

/* No tokenizer is ever open, so that no encoder is. */
int ifl_encoder_open(const struct ifl_tokenizer *tokenizer, struct ifl_encoder **encoder,
                     struct ifl_error *error)
{
    (void)tokenizer;
    *encoder = NULL;
    return ifl_fail(error, IFL_E_INPUT, "this inflight was built without tokenizers");
}

void ifl_encoder_close(struct ifl_encoder *encoder)
{
    ifl_require(!encoder);
}

int ifl_encode(struct ifl_encoder *encoder, const char *text, size_t n_bytes, const uint32_t **ids,
               size_t *n_ids, struct ifl_error *error)
{
    (void)encoder, (void)text, (void)n_bytes;
    *ids = NULL;
    *n_ids = 0;
    return ifl_fail(error, IFL_E_INPUT, "this inflight was built without tokenizers");
}

int ifl_encoder_make_text(struct ifl_encoder *encoder, size_t n_tokens, uint64_t seed, char **text,
                          struct ifl_error *error)
{
    (void)encoder, (void)n_tokens, (void)seed;
    *text = NULL;
    return ifl_fail(error, IFL_E_INPUT, "this inflight was built without tokenizers");
}

const char *text_library_versions(char *out, size_t size)
{
    snprintf(out, size, "none");
    return out;
}
