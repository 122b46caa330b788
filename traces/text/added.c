/* Added tokens: found in a text before it is normalised and split, leftmost and of these longest,
 * by a pattern of all of them, the longest first. */
#include "text/text.h"

#include <string.h>

int text_added_add(struct text_added *added, const struct text_added_token *token,
                   struct ifl_error *error)
{
    if (token->n_bytes == 0)
        return 0;
    int rc = trace_reserve(&added->tokens, &added->cap, added->n + 1, sizeof *added->tokens, error);
    if (rc == 0)
        rc = text_vocab_add(&added->of, token->content, token->n_bytes, (uint32_t)added->n, error);
    if (rc == 0)
        added->tokens[added->n++] = *token;
    return rc;
}

static int longer(const void *left, const void *right)
{
    const struct text_token *a = left, *b = right;
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes > b->n_bytes ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Bytes of ASCII that are no letters or digits are escaped, all others stand for themselves. */
static size_t quote(const struct text_vocab *of, const struct text_token *tokens, size_t n,
                    char *out)
{
    char *at = out;
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            *at++ = '|';
        for (size_t k = 0; k < tokens[i].n_bytes; k++) {
            const char c = of->bytes[tokens[i].at + k];
            const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                               (c >= 'a' && c <= 'z') || (unsigned char)c >= 0x80;
            if (!plain)
                *at++ = '\\';
            *at++ = c;
        }
    }
    return (size_t)(at - out);
}

int text_added_end(struct text_added *added, struct ifl_error *error)
{
    const struct text_vocab *of = &added->of;
    int found;
    size_t at;
    if (added->n == 0)
        return 0;
    struct text_token *tokens = malloc(of->n * sizeof *tokens);
    char *pattern = malloc(2 * of->n_bytes + of->n);
    if (tokens && pattern) {
        memcpy(tokens, of->tokens, of->n * sizeof *tokens);
        qsort(tokens, of->n, sizeof *tokens, longer);
        added->code = pcre2_compile((PCRE2_SPTR)pattern, quote(of, tokens, of->n, pattern),
                                    PCRE2_UTF, &found, &at, NULL);
    }
    const bool whole = tokens && pattern;
    free(tokens);
    free(pattern);
    if (!whole)
        return ifl_fail_nomem(error);
    if (!added->code)
        return ifl_fail(error, IFL_E_INPUT, "the %zu added_tokens are too long for a pattern",
                        of->n);
    pcre2_jit_compile(added->code, PCRE2_JIT_COMPLETE);
    return 0;
}

void text_added_free(struct text_added *added)
{
    pcre2_code_free(added->code);
    text_vocab_free(&added->of);
    free(added->tokens);
    *added = (struct text_added){0};
}
