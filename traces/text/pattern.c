/* Patterns of tokenizers by PCRE2. `tokenizers` runs them by Oniguruma (Ruby's syntax), tiktoken by
 * Rust's fancy-regex. What these and PCRE2 read differently is rewritten where that is known to be
 * the same, and refused elsewhere:
 *
 *   \s, \S      become Unicode's White_Space: PCRE2's also holds U+180E
 *   \p{Han}     becomes \p{sc:Han}: PCRE2 10.40 and later take the Script_Extensions
 *   \w \b \h \v \R \X ..., `.`, `^`, `$`, [[:alpha:]], [a&&b], (?i) and what else may differ are
 *   refused */
#include "text/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PATTERN_BYTES = 1 << 16, MOST_GROWTH = 160, MATCH_LIMIT = 50000000 };

#define SPACES                                                                                     \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"    \
    "\\x{205f}\\x{3000}"
#define NO_SPACES                                                                                  \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"                   \
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"                 \
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

/* ---- rewriting ---- */

struct rewriting {
    const char *at, *end;
    char *out;
    bool in_class;
    const char *refused; /* what is not read alike; NULL so far */
};

static void put(struct rewriting *r, const char *text)
{
    const size_t n = strlen(text);
    memcpy(r->out, text, n);
    r->out += n;
}

static bool next_is(const struct rewriting *r, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

/* \p{...}: general categories have one or two letters, all others must be scripts. */
static void rewrite_property(struct rewriting *r)
{
    const char *close = memchr(r->at, '}', (size_t)(r->end - r->at));
    const bool braced = r->at + 1 < r->end && r->at[1] == '{' && close;
    if (!braced || close - r->at > 40) {
        r->refused = "\\p without a name in braces";
        return;
    }
    const char *name = r->at + 2;
    *r->out++ = '\\';
    *r->out++ = *r->at;
    put(r, close - name > 2 ? "{sc:" : "{");
    for (; name < close; name++)
        if (isalpha((unsigned char)*name) || *name == '_')
            *r->out++ = *name;
        else
            r->refused = "a property that is neither a category nor a script";
    *r->out++ = '}';
    r->at = close + 1;
}

static void rewrite_escape(struct rewriting *r)
{
    const unsigned char letter = r->at < r->end ? (unsigned char)*r->at : 'u';
    if (letter == 's') {
        put(r, r->in_class ? SPACES : "[" SPACES "]");
        r->at++;
    } else if (letter == 'S') {
        put(r, r->in_class ? NO_SPACES : "[^" SPACES "]");
        r->at++;
    } else if (letter == 'p' || letter == 'P') {
        rewrite_property(r);
    } else if (!isalnum(letter) || strchr("rntd", letter) || (!r->in_class && letter == 'z') ||
               next_is(r, "x{")) {
        *r->out++ = '\\';
        *r->out++ = *r->at++;
    } else {
        r->refused = "an escape that is none of \\s \\S \\p \\P \\d \\n \\r \\t \\x{...}";
    }
}

/* Oniguruma also folds some pairs of letters to one (Unicode's CaseFolding.txt, status F). */
static bool folds_to_one(const struct rewriting *r)
{
    static const char *const pairs[] = {"ff", "fi", "fl", "ss", "st"};
    for (const char *at = r->at; at + 1 < r->end && *at != ')'; at++)
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            if (tolower((unsigned char)at[0]) == pairs[i][0] &&
                tolower((unsigned char)at[1]) == pairs[i][1])
                return true;
    return false;
}

static void check_group(struct rewriting *r)
{
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    bool is_known = !next_is(r, "(?") && !next_is(r, "(*");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known = is_known || next_is(r, known[i]);
    if (!is_known || (next_is(r, "(?i:") && folds_to_one(r)))
        r->refused = "a group that is none of ( (?: (?= (?! (?<= (?<! (?> (?i:";
}

static void check_outside(struct rewriting *r)
{
    if (*r->at == '(')
        check_group(r);
    else if (strchr(".^$", *r->at))
        r->refused = "'.', '^' or '$' outside a class";
    else if (next_is(r, "{,") || next_is(r, "}+"))
        r->refused = "{,n} or {n,m}+";
    else if (next_is(r, "[]") || next_is(r, "[^]"))
        r->refused = "a class that begins with ]";
}

static void rewrite_one(struct rewriting *r)
{
    if (*r->at == '\\') {
        r->at++;
        rewrite_escape(r);
        return;
    }
    if (!r->in_class)
        check_outside(r);
    else if (*r->at == '[' || next_is(r, "&&"))
        r->refused = "a class in a class, or &&";
    const bool negated = !r->in_class && next_is(r, "[^");
    r->in_class = r->in_class ? *r->at != ']' : *r->at == '[';
    *r->out++ = *r->at++;
    if (negated)
        *r->out++ = *r->at++;
}

/* *rewritten is to be freed. */
static int rewrite(const char *pattern, size_t n_bytes, const char *where, char **rewritten,
                   size_t *n, struct ifl_error *error)
{
    if (n_bytes == 0 || n_bytes > MAX_PATTERN_BYTES || memchr(pattern, '\0', n_bytes))
        return ifl_fail(error, IFL_E_INPUT,
                        "%s has a pattern of %zu bytes, expected 1 to %d without NUL", where,
                        n_bytes, MAX_PATTERN_BYTES);
    *rewritten = malloc(n_bytes * MOST_GROWTH);
    if (!*rewritten)
        return ifl_fail_nomem(error);
    struct rewriting r = {.at = pattern, .end = pattern + n_bytes, .out = *rewritten};
    while (r.at < r.end && !r.refused)
        rewrite_one(&r);
    *n = (size_t)(r.out - *rewritten);
    if (!r.refused)
        return 0;
    free(*rewritten);
    *rewritten = NULL;
    return ifl_fail(error, IFL_E_INPUT,
                    "%s has a pattern with %s at byte %zu, which engines of patterns read "
                    "differently",
                    where, r.refused, (size_t)(r.at - pattern) + 1);
}

/* ---- compiling ---- */

static int check_compiled(const pcre2_code *code, const char *where, struct ifl_error *error)
{
    uint32_t may_be_empty = 1;
    pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &may_be_empty);
    return may_be_empty ? ifl_fail(error, IFL_E_INPUT,
                                   "%s has a pattern that matches the empty text, expected one "
                                   "that does not",
                                   where)
                        : 0;
}

int text_pattern(const char *pattern, size_t n_bytes, const char *where, pcre2_code **code,
                 struct ifl_error *error)
{
    char *rewritten, why[120] = "";
    size_t n, at;
    int found;
    *code = NULL;
    if (rewrite(pattern, n_bytes, where, &rewritten, &n, error) < 0)
        return error->code;
    *code = pcre2_compile((PCRE2_SPTR)rewritten, n, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                          &found, &at, NULL);
    free(rewritten);
    if (!*code) {
        pcre2_get_error_message(found, (PCRE2_UCHAR *)why, sizeof why);
        return ifl_fail(error, IFL_E_INPUT, "%s has a pattern that PCRE2 refuses: %s", where, why);
    }
    if (check_compiled(*code, where, error) < 0) {
        pcre2_code_free(*code);
        *code = NULL;
        return error->code;
    }
    pcre2_jit_compile(*code, PCRE2_JIT_COMPLETE); /* without it the interpreter matches */
    return 0;
}

/* ---- splits that files do not write down ---- */

static const char gpt2_split[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* tiktoken 0.14, openai_public.py; with \z for $, which is the same there. */
static const char cl100k_split[] = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,"
                                   "3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+"
                                   "|\\s++\\z|\\s*[\\r\\n]|\\s+(?!\\S)|\\s";
static const char r50k_split[] =
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++\\z|\\s+(?!\\S)|\\s";
#define O200K_CASES                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"                                  \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"                                 \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"                                  \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
static const char o200k_split[] =
    O200K_CASES "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* Llama 3, models/llama3/tokenizer.py; Qwen, tokenization_qwen.py. They differ in digits. */
#define LLAMA3_SPLIT(digits)                                                                       \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const char *text_split_named(const char *name)
{
    static const struct {
        const char *name, *split;
    } known[] = {{"gpt2", gpt2_split},
                 {"r50k_base", r50k_split},
                 {"p50k_base", r50k_split},
                 {"cl100k_base", cl100k_split},
                 {"o200k_base", o200k_split},
                 {"llama3", LLAMA3_SPLIT("\\p{N}{1,3}")},
                 {"qwen", LLAMA3_SPLIT("\\p{N}")}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(name, known[i].name, strlen(known[i].name)) == 0)
            return known[i].split;
    return NULL;
}

/* ---- matching ---- */

int text_matcher_open(struct text_matcher *matcher, struct ifl_error *error)
{
    *matcher =
        (struct text_matcher){pcre2_match_data_create(1, NULL), pcre2_match_context_create(NULL),
                              pcre2_jit_stack_create(1 << 15, 1 << 23, NULL)};
    if (!matcher->data || !matcher->context || !matcher->stack) {
        text_matcher_close(matcher);
        return ifl_fail_nomem(error);
    }
    pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    pcre2_set_match_limit(matcher->context, MATCH_LIMIT);
    return 0;
}

void text_matcher_close(struct text_matcher *matcher)
{
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    *matcher = (struct text_matcher){0};
}

int text_match(struct text_matcher *matcher, const pcre2_code *code, const char *text, size_t n,
               size_t from, size_t *begin, size_t *end, struct ifl_error *error)
{
    char why[120] = "";
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int rc = pcre2_jit_match(code, subject, n, from, 0, matcher->data, matcher->context);
    if (rc == PCRE2_ERROR_JIT_BADOPTION)
        rc = pcre2_match(code, subject, n, from, PCRE2_NO_UTF_CHECK, matcher->data,
                         matcher->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc >= 0) {
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(matcher->data);
        *begin = at[0];
        *end = at[1];
        return 1;
    }
    pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
    return ifl_fail(error, IFL_E_INPUT,
                    "the tokenizer's pattern gives up on the text at byte %zu: %s", from + 1, why);
}

int text_check_utf8(struct text_matcher *matcher, const pcre2_code *any, const char *text, size_t n,
                    struct ifl_error *error)
{
    const int rc = pcre2_match(any, (PCRE2_SPTR)text, n, 0, PCRE2_ANCHORED, matcher->data, NULL);
    return rc >= 0 ? 0
                   : ifl_fail(error, IFL_E_INPUT,
                              "the text's byte %zu begins no character of UTF-8, expected UTF-8",
                              pcre2_get_startchar(matcher->data) + 1);
}
