#include "import/words.h"

#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What a shell ends a command or begins a redirection with. */
static bool is_operator(char c)
{
    return strchr(";&|<>", c) != NULL;
}

/* "<model>", as texts for readers have it where a value of their own is due: how long it is; 0: it
 * is none. To a shell it is two redirections, the second of which takes the next word. */
static size_t placeholder(const char *at)
{
    if (*at != '<' || !at[1] || is_blank(at[1]))
        return 0;
    const size_t n = 1 + strcspn(at + 1, "<>()|;&'\"\n");
    const bool is_number = at[n - 1] >= '0' && at[n - 1] <= '9' && is_blank(at[n - 2]); /* "2>" */
    const bool ends = !at[n] || !at[n + 1] || strchr("/:,\"'", at[n + 1]) || is_blank(at[n + 1]);
    return at[n] == '>' && n > 1 && !is_blank(at[n - 1]) && !is_number && ends ? n + 1 : 0;
}

/* Copies one word to `out`. Returns where it ends, NULL if a quote is not closed. */
static const char *copy_word(const char *at, char **out)
{
    char quote = '\0';
    for (; *at && (quote || placeholder(at) || (!is_blank(*at) && !is_operator(*at))); at++) {
        if (!quote && placeholder(at)) {
            const size_t n_chars = placeholder(at);
            memcpy(*out, at, n_chars);
            *out += n_chars;
            at += n_chars - 1;
        } else if (*at == quote) {
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

/* A backslash and the line's end that it takes away: how long both are; 0: neither. */
static size_t joint(const char *at)
{
    const size_t n_return = at[0] == '\\' && at[1] == '\r';
    return at[0] == '\\' && at[1 + n_return] == '\n' ? 2 + n_return : 0;
}

/* Blanks, and lines that a backslash joins. A line's end ends a command, unless the next line goes
 * on with a flag. */
static const char *skip_blanks(const char *at, bool *is_break)
{
    bool ends = false;
    while (is_blank(*at) || joint(at) > 0) {
        ends = ends || *at == '\n';
        at += joint(at) > 0 ? joint(at) : 1;
    }
    *is_break = ends && *at && *at != '-';
    return at;
}

/* A comment goes up to the line's end; "# version 0.9.1" is what `inflight export` writes. */
static bool is_comment(const char *at)
{
    const size_t n = *at == '#' ? strspn(at + 1, " ") : 0;
    return *at == '#' && (strncmp(at + 1 + n, "version ", 8) != 0 ||
                          !strchr("0123456789", at[1 + n + strlen("version ")]));
}

/* "2>", "&>", "<<": how long it is; 0: none. What it names follows. */
static size_t redirection(const char *at)
{
    const size_t n = at[0] == '&' && at[1] == '>' ? 1 : strspn(at, "0123456789");
    if (placeholder(at + n))
        return 0;
    return at[n] == '<' || at[n] == '>' ? n + strspn(at + n, "<>&|") : 0;
}

static void add_word(struct words *words, char *word, bool is_break)
{
    const bool again = is_break && words->n > 0 && words->is_break[words->n - 1];
    words->of[words->n] = word;
    words->is_break[words->n] = is_break;
    words->n += !again;
}

/* One word, break, comment or redirection. Returns where it ends, NULL if a quote is not closed. */
static const char *take_word(struct words *words, const char *at, char **out)
{
    char *word = *out;
    bool is_break;
    if (is_comment(at))
        return at + strcspn(at, "\n");
    if (redirection(at) > 0) { /* what it names is no word of the command */
        at = copy_word(skip_blanks(at + redirection(at), &is_break), out);
        *out = word;
        return at;
    }
    const size_t n_break = *at == '#' ? 1 : strspn(at, ";&|");
    if (n_break == 0) {
        at = copy_word(at, out);
        add_word(words, word, false);
        return at;
    }
    *(*out)++ = *at;
    *(*out)++ = '\0';
    add_word(words, word, true);
    return at + n_break;
}

int words_split(const char *line, struct words *words, struct ifl_error *error)
{
    static char line_end[] = ";";
    const size_t n_bytes = strlen(line);
    bool is_break;
    *words = (struct words){.text = malloc(2 * n_bytes + 2),
                            .of = malloc((2 * n_bytes + 2) * sizeof *words->of),
                            .is_break = malloc(2 * n_bytes + 2)};
    char *out = words->text;
    if (!words->text || !words->of || !words->is_break) {
        words_free(words);
        return ifl_fail_nomem(error);
    }
    for (const char *at = skip_blanks(line, &is_break); *at; at = skip_blanks(at, &is_break)) {
        if (is_break && words->n > 0)
            add_word(words, line_end, true);
        at = take_word(words, at, &out);
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
    free(words->is_break);
    free(words->text);
    *words = (struct words){0};
}

bool word_is_one_of(const char *word, const char *const *names)
{
    while (*names && strcmp(word, *names) != 0)
        names++;
    return *names;
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

/* How many characters from `at` on are of a quoted text, its quotes included: 0, 1, or 2 where a
 * backslash hides the second. *quote is the mark that will close the text, '\0' outside of one. */
static size_t quoted(const char *at, char *quote)
{
    if (!*quote && *at != '\'' && *at != '"')
        return 0;
    if (!*quote)
        *quote = *at;
    else if (*at == '\\' && at[1])
        return 2;
    else if (*at == *quote)
        *quote = '\0';
    return 1;
}

/* The end of a value: a comma, a blank before a name, or a bracket that was opened before it. */
static char *value_end(char *at)
{
    int depth = 0;
    char quote = '\0';
    for (; *at; at++) {
        const size_t n_quoted = quoted(at, &quote);
        if (n_quoted > 0) {
            at += n_quoted - 1;
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

enum list_end list_end_of(const char *at, bool has_bracket)
{
    const size_t n = strlen(at);
    const char *last = at; /* argument */
    int depth = 0;
    char quote = '\0';
    if (n >= 3 && strcmp(at + n - 3, "...") == 0)
        return LIST_CLOSED;
    for (; *at; at++) {
        const size_t n_quoted = quoted(at, &quote);
        if (n_quoted > 0) {
            at += n_quoted - 1;
        } else if (strchr("([{<", *at)) {
            depth++;
        } else if (strchr(")]}>", *at) && depth-- == 0) {
            return LIST_CLOSED;
        } else if (*at == ',' && depth == 0) {
            last = at + 1;
        }
    }
    last += strspn(last, " ");
    const bool is_half = *last && !strpbrk(last, "=:"); /* of a name */
    return quote || depth > 0 || has_bracket || is_half ? LIST_OPEN : LIST_MAY_GO_ON;
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
