/* tekken.json (mistral-common 1.x, tokens/tokenizers/tekken.py): ranks as in tiktoken, the pattern,
 * and how many ids the special tokens take in front of them. */
#include "text/text.h"

#include <string.h>

static int64_t count_of(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static int read_token(const struct text_file *file, const json_t *token, size_t i,
                      struct ifl_tokenizer *tokenizer, struct ifl_error *error)
{
    const json_t *bytes64 = json_object_get(token, "token_bytes");
    char bytes[2 * TEXT_MAX_TOKEN_BYTES];
    const size_t n = json_string_length(bytes64);
    const long n_bytes =
        n / 4 * 3 <= TEXT_MAX_TOKEN_BYTES ? text_base64(json_string_value(bytes64), n, bytes) : -1;
    if (n_bytes <= 0 || count_of(token, "rank") != (int64_t)i)
        return ifl_fail_at(
            error, file->path, 0, 0,
            "vocab[%zu] has no token_bytes in base64 of at most %d bytes, or its rank "
            "is not %zu",
            i, TEXT_MAX_TOKEN_BYTES, i);
    return text_vocab_add(&tokenizer->vocab, bytes, (size_t)n_bytes, (uint32_t)i, error);
}

int text_end_ranks(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                   struct ifl_error *error)
{
    unsigned missing;
    tokenizer->whole_words = true;
    if (text_vocab_end(&tokenizer->vocab, &missing) != 0)
        return ifl_fail_at(error, file->path, 0, 0, "no token is the byte 0x%02x, expected all 256",
                           missing);
    return text_merges_of_ranks(&tokenizer->merges, &tokenizer->vocab, error);
}

/* Special tokens are no text in answers. Older files do not name them; the second is <s> in all
 * (mistral-common, tokens/tokenizers/tekken.py). */
static int add_specials(const json_t *specials, uint32_t n, struct ifl_tokenizer *tokenizer,
                        struct ifl_error *error)
{
    int rc = 0;
    for (uint32_t id = 0; rc == 0 && id < n; id++)
        rc = text_extras_add(&tokenizer->extras, "", 0, id, true, error);
    const char *name = json_string_value(json_object_get(json_array_get(specials, 1), "token_str"));
    if (n > 1 && (!name || strcmp(name, "<s>") == 0))
        tokenizer->frame = (struct ifl_token_frame){.before = {1}, .n_before = 1};
    return rc;
}

int text_read_tekken(const struct text_file *file, const json_t *root,
                     struct ifl_tokenizer *tokenizer, struct ifl_error *error)
{
    const json_t *config = json_object_get(root, "config"), *vocab = json_object_get(root, "vocab");
    const json_t *pattern = json_object_get(config, "pattern");
    const int64_t n_ids = count_of(config, "default_vocab_size");
    const int64_t n_special = count_of(config, "default_num_special_tokens");
    const int64_t n = n_ids - n_special;
    if (!json_is_string(pattern) || n_special < 0 || n < 1 || n > TEXT_MAX_IDS ||
        n_special > TEXT_MAX_IDS || (int64_t)json_array_size(vocab) < n)
        return ifl_fail_at(error, file->path, 0, 0,
                           "config has no pattern, no default_num_special_tokens, or a "
                           "default_vocab_size that vocab does not fill");
    tokenizer->shift = (uint32_t)n_special;
    int rc = text_add_stage(tokenizer, TEXT_KEEP, json_string_value(pattern),
                            json_string_length(pattern), "config.pattern", error);
    if (rc == 0)
        rc = add_specials(json_object_get(root, "special_tokens"), (uint32_t)n_special, tokenizer,
                          error);
    for (size_t i = 0; rc == 0 && i < (size_t)n; i++)
        rc = read_token(file, json_array_get(vocab, i), i, tokenizer, error);
    return rc < 0 ? rc : text_end_ranks(file, tokenizer, error);
}
