/* Ranks as tiktoken keeps them: a token in base64, a blank, its rank; a line each. The name of the
 * file says how texts are split. */
#include "text/text.h"

#include <string.h>

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The rank behind the blank, or -1. */
static int64_t rank_of(const char *text, const char *end)
{
    int64_t rank = -1;
    for (; text < end && *text >= '0' && *text <= '9' && rank < TEXT_MAX_IDS; text++)
        rank = (rank < 0 ? 0 : rank) * 10 + (*text - '0');
    return text == end && rank < TEXT_MAX_IDS ? rank : -1;
}

static int read_line(const struct text_file *file, int line, const char *text, const char *end,
                     struct ifl_tokenizer *tokenizer, struct ifl_error *error)
{
    char bytes[2 * TEXT_MAX_TOKEN_BYTES];
    if (end > text && end[-1] == '\r')
        end--;
    const char *blank = memchr(text, ' ', (size_t)(end - text));
    const size_t n = blank ? (size_t)(blank - text) : 0;
    const int64_t rank = blank ? rank_of(blank + 1, end) : -1;
    const long n_bytes = n / 4 * 3 <= TEXT_MAX_TOKEN_BYTES ? text_base64(text, n, bytes) : -1;
    if (n_bytes <= 0 || rank < 0)
        return ifl_fail_at(error, file->path, line, 0,
                           "no token in base64 and its rank, expected both with a blank between");
    return text_vocab_add(&tokenizer->vocab, bytes, (size_t)n_bytes, (uint32_t)rank, error);
}

int text_read_ranks(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                    struct ifl_error *error)
{
    const char *name = name_of(file->path), *split = text_split_named(name);
    const char *text = file->bytes, *end = text + file->n_bytes;
    if (!split)
        return ifl_fail_at(
            error, file->path, 0, 0,
            "ranks of tiktoken do not say how texts are split, expected a file whose "
            "name begins with r50k_base, p50k_base, cl100k_base, o200k_base, llama3 "
            "or qwen");
    tokenizer->nfc = strncmp(name, "qwen", 4) == 0 ? TEXT_NFC : TEXT_NO_NFC;
    int rc = text_add_stage(tokenizer, TEXT_KEEP, split, strlen(split), name, error);
    for (int line = 1; rc == 0 && text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *behind = newline ? newline : end;
        rc = read_line(file, line, text, behind, tokenizer, error);
        text = newline ? newline + 1 : end;
    }
    return rc < 0 ? rc : text_end_ranks(file, tokenizer, error);
}
