#include "import/words.h"

#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Copies one word to `out`. Returns where it ends, NULL if a quote is not closed. */
static const char *copy_word(const char *at, char **out)
{
    char quote = '\0';
    for (; *at && (quote || !is_blank(*at)); at++) {
        if (*at == quote) {
            quote = '\0';
        } else if (!quote && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (*at == '\\' && quote != '\'' && at[1] && (!quote || strchr("\"\\$`\n", at[1]))) {
            at++;
            if (*at != '\n')
                *(*out)++ = *at;
        } else {
            *(*out)++ = *at;
        }
    }
    *(*out)++ = '\0';
    return quote ? NULL : at;
}

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at) || (at[0] == '\\' && at[1] == '\n') ||
           (at[0] == '\\' && at[1] == '\r' && at[2] == '\n'))
        at += *at == '\\' ? 2 : 1;
    return at;
}

int words_split(const char *line, struct words *words, struct ifl_error *error)
{
    const size_t n_bytes = strlen(line);
    *words = (struct words){.text = malloc(n_bytes + 2),
                            .of = malloc((n_bytes / 2 + 2) * sizeof *words->of)};
    char *out = words->text;
    if (!words->text || !words->of) {
        words_free(words);
        return ifl_fail_nomem(error);
    }
    for (const char *at = skip_blanks(line); *at; at = skip_blanks(at)) {
        words->of[words->n++] = out;
        at = copy_word(at, &out);
        if (!at) {
            words_free(words);
            return ifl_fail(error, IFL_E_INPUT, "the command line: a quote is not closed");
        }
    }
    words->of[words->n] = NULL;
    return 0;
}

void words_free(struct words *words)
{
    free(words->of);
    free(words->text);
    *words = (struct words){0};
}

/* ---- lists of arguments ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* True if a name and an equals sign follow. */
static bool is_name_ahead(const char *at)
{
    const char *end = at;
    while (is_name_char(*end))
        end++;
    return end > at && *end == '=';
}

/* The end of a value: a comma, a blank before a name, or a bracket that was opened before it. */
static char *value_end(char *at)
{
    int depth = 0;
    char quote = '\0';
    for (; *at; at++) {
        if (quote) {
            if (*at == '\\' && at[1])
                at++;
            else if (*at == quote)
                quote = '\0';
        } else if (*at == '\'' || *at == '"') {
            quote = *at;
        } else if (strchr("([{<", *at)) {
            depth++;
        } else {
            const bool ends = *at == ',' || (*at == ' ' && is_name_ahead(at + 1));
            const bool closes = strchr(")]}>", *at) != NULL;
            if (depth == 0 && (closes || ends))
                return at;
            depth -= closes;
        }
    }
    return at;
}

static char *without_quotes(char *text)
{
    const size_t n = strlen(text);
    if (n < 2 || (text[0] != '\'' && text[0] != '"') || text[n - 1] != text[0])
        return text;
    text[n - 1] = '\0';
    return text + 1;
}

static char *trim(char *text)
{
    text += strspn(text, " ");
    for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
        text[n - 1] = '\0';
    return text;
}

bool argument_next(char **at, struct argument *argument)
{
    char *begin = *at + strspn(*at, " ,"), *name_end;
    if (!*begin || strchr(")]}>", *begin))
        return false;
    const char quote = *begin == '\'' || *begin == '"' ? *begin : '\0';
    begin += quote != '\0';
    name_end = begin;
    while (is_name_char(*name_end) || (quote && *name_end && *name_end != quote))
        name_end++;
    char *sign = name_end + (quote && *name_end == quote);
    const bool has_value = *sign == '=' || *sign == ':';
    char *end = value_end(has_value ? sign + 1 : begin);
    const char closing = *end;
    *at = end + (closing != '\0' && !strchr(")]}>", closing));
    if (closing && strchr(")]}>", closing))
        *at = end + strlen(end); /* what follows the list is none of it */
    *end = '\0';
    argument->value = has_value ? without_quotes(trim(sign + 1)) : NULL;
    if (has_value)
        *name_end = '\0';
    argument->name = has_value ? begin : trim(begin);
    return true;
}
