/* A tokenizer from memory: any bytes give a tokenizer or a one-line error. An accepted one encodes
 * a text, to the same ids each time. */
#include <string.h>

#include "text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static const char text[] = " The  quick\n\n brown foxes' 12345 don't; \xc3\xa9 \x65\xcc\x81 "
                           "\xe4\xb8\xad\xe6\x96\x87 <|a|> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\t\r\n";

static void check_text(struct ifl_encoder *encoder)
{
    struct ifl_error error = {0};
    const uint32_t *ids;
    size_t n, n_again;
    if (ifl_encode(encoder, text, sizeof text - 1, &ids, &n, &error) < 0) {
        ifl_require(error.code == IFL_E_INPUT && *error.text && !strchr(error.text, '\n'));
        return;
    }
    uint32_t first = n > 0 ? ids[0] : 0;
    ifl_require(ifl_encode(encoder, text, sizeof text - 1, &ids, &n_again, &error) == 0);
    ifl_require(n_again == n && (n == 0 || ids[0] == first));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct ifl_tokenizer *tokenizer;
    struct ifl_encoder *encoder;
    struct ifl_error error = {0};
    if (text_open_memory("cl100k_base", (const char *)bytes, n_bytes, &tokenizer, &error) < 0) {
        ifl_require(error.code == IFL_E_INPUT && *error.text && !strchr(error.text, '\n'));
        return 0;
    }
    ifl_require(ifl_encoder_open(tokenizer, &encoder, &error) == 0);
    check_text(encoder);
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
    return 0;
}
