/* NFC, by utf8proc.
 *
 * `tokenizers` (0.23) has the tables of Unicode 9.0 for it: a combining mark that came later is a
 * letter like any other to it, which nothing passes or joins. So text is normalised between such
 * marks for its files. */
#include "text/text.h"

#include <string.h>
#include <utf8proc.h>

/* Marks with a combining class that are newer than Unicode 9.0 (DerivedAge.txt and UnicodeData.txt,
 * up to Unicode 15.0), and U+11930, with which U+11935 has a composition since 13.0. */
static const struct {
    utf8proc_int32_t first, last;
} later_marks[] = {
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},
    {0xc3c, 0xc3c},     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},
    {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},   {0x10d24, 0x10d27},
    {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85},
    {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
    {0x11930, 0x11930}, {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0},
    {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42},
    {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1},
    {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
    {0x1e4ec, 0x1e4ef},
};

static bool is_later(utf8proc_int32_t letter)
{
    for (size_t i = 0; i < sizeof later_marks / sizeof *later_marks; i++)
        if (letter >= later_marks[i].first && letter <= later_marks[i].last)
            return true;
    return false;
}

/* The next mark that counts as a letter: *begin, and how many bytes it has; 0: there is none. */
static size_t next_later(const char *text, size_t n, size_t *begin)
{
    for (size_t at = 0; at < n;) {
        utf8proc_int32_t letter;
        const utf8proc_ssize_t n_bytes = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                          (utf8proc_ssize_t)(n - at), &letter);
        if (n_bytes <= 0)
            break;
        *begin = at;
        if (letter >= later_marks[0].first && is_later(letter))
            return (size_t)n_bytes;
        at += (size_t)n_bytes;
    }
    *begin = n;
    return 0;
}

struct normal {
    char *bytes;
    size_t n, cap;
};

static int append(struct normal *to, const char *bytes, size_t n, struct ifl_error *error)
{
    const int rc = trace_reserve(&to->bytes, &to->cap, to->n + n + 1, 1, error);
    if (rc < 0)
        return rc;
    if (n > 0)
        memcpy(to->bytes + to->n, bytes, n);
    to->n += n;
    return 0;
}

static int append_normal(struct normal *to, const char *text, size_t n, struct ifl_error *error)
{
    utf8proc_uint8_t *out = NULL;
    if (n == 0)
        return append(to, text, 0, error);
    const utf8proc_ssize_t n_out = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n,
                                                &out, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (n_out == UTF8PROC_ERROR_NOMEM)
        return ifl_fail_nomem(error);
    if (n_out < 0)
        return ifl_fail(error, IFL_E_INPUT, "the text has no NFC: %s", utf8proc_errmsg(n_out));
    const int rc = append(to, (const char *)out, (size_t)n_out, error);
    free(out);
    return rc;
}

int text_nfc(const char *text, size_t n, enum text_nfc_tables tables, char **normal,
             size_t *n_normal, struct ifl_error *error)
{
    struct normal to = {0};
    int rc = 0;
    for (size_t at = 0, begin; rc == 0 && at < n;) {
        size_t n_mark = 0;
        begin = n - at;
        if (tables == TEXT_NFC_UNICODE_9)
            n_mark = next_later(text + at, n - at, &begin);
        rc = append_normal(&to, text + at, begin, error);
        if (rc == 0)
            rc = append(&to, text + at + begin, n_mark, error);
        at += begin + n_mark;
    }
    if (rc < 0) {
        free(to.bytes);
        return rc;
    }
    *normal = to.bytes;
    *n_normal = to.n;
    return 0;
}
