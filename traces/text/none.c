/* Tokenizers, in a build without them. */
#include "text/count.h"

void ifl_tokenizer_modules(ifl_module_load_fn *load)
{
    (void)load;
}

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

int ifl_encoder_words(struct ifl_encoder *encoder, const uint32_t **ids, size_t *n_ids,
                      struct ifl_error *error)
{
    (void)encoder, (void)ids;
    *n_ids = 0;
    return ifl_fail(error, IFL_E_INPUT, "this inflight was built without tokenizers");
}

int ifl_tokenizer_frame(const struct ifl_tokenizer *tokenizer, struct ifl_token_frame *frame,
                        struct ifl_error *error)
{
    (void)tokenizer;
    *frame = (struct ifl_token_frame){0};
    return ifl_fail(error, IFL_E_INPUT, "this inflight was built without tokenizers");
}

int ifl_decoder_open(const struct ifl_tokenizer *tokenizer, struct ifl_decoder **decoder,
                     struct ifl_error *error)
{
    (void)tokenizer;
    *decoder = NULL;
    return ifl_fail(error, IFL_E_INPUT, "this inflight was built without tokenizers");
}

void ifl_decoder_close(struct ifl_decoder *decoder)
{
    ifl_require(!decoder);
}

struct ifl_token_text ifl_decoder_token(const struct ifl_decoder *decoder, uint32_t id)
{
    (void)decoder, (void)id;
    return (struct ifl_token_text){0};
}

bool ifl_decoder_drops_blank(const struct ifl_decoder *decoder)
{
    (void)decoder;
    return false;
}

const char *text_library_versions(char *out, size_t size)
{
    snprintf(out, size, "none");
    return out;
}
