#include "import/expand.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "import/secrets.h"

/* ---- variables ---- */

static struct variable *find(const struct variables *variables, const char *name, size_t n_chars)
{
    for (size_t i = 0; i < variables->n; i++)
        if (strncmp(variables->of[i].name, name, n_chars) == 0 && !variables->of[i].name[n_chars])
            return &variables->of[i];
    return NULL;
}

int variables_set(struct variables *variables, const struct variable *variable)
{
    struct variable *of = find(variables, variable->name, strlen(variable->name));
    char *value = strdup(variable->value), *name = of ? of->name : strdup(variable->name);
    if (!value || !name ||
        (!of && array_room(&variables->of, variables->n, &variables->cap, 8, sizeof *of) < 0)) {
        free(value);
        if (!of)
            free(name);
        return IFL_E_NOMEM;
    }
    if (of)
        free(of->value);
    else
        of = &variables->of[variables->n++];
    *of = (struct variable){name, value, variable->is_list};
    return 0;
}

void variables_forget(struct variables *variables, const char *name)
{
    struct variable *of = find(variables, name, strlen(name));
    if (!of)
        return;
    free(of->name);
    free(of->value);
    *of = variables->of[--variables->n];
}

/* A report has no secrets in other places than behind their names. Names with TOKEN in them are of
 * secrets but for numbers of tokens and tokenizers. */
static bool hides(const char *name, size_t n_chars)
{
    char text[128];
    snprintf(text, sizeof text, "%.*s", (int)(n_chars < 127 ? n_chars : 127), name);
    return is_secret_name(text, strlen(text)) && !strstr(text, "TOKENS") && !strstr(text, "TOKENI");
}

static const struct variable *shown(const struct variables *variables, const char *name,
                                    size_t n_chars)
{
    return hides(name, n_chars) ? NULL : find(variables, name, n_chars);
}

const struct variable *variables_get(const struct variables *variables, const char *name,
                                     size_t n_chars)
{
    return find(variables, name, n_chars);
}

void variables_free(struct variables *variables)
{
    for (size_t i = 0; i < variables->n; i++) {
        free(variables->of[i].name);
        free(variables->of[i].value);
    }
    free(variables->of);
    *variables = (struct variables){0};
}

/* ---- references ---- */

/* $1 is the first argument of a script, and $12 that with a 2 behind it. */
static size_t name_chars(const char *at)
{
    size_t n = isdigit((unsigned char)*at) != 0;
    while (n == 0 || !isdigit((unsigned char)*at)) {
        if (!isalnum((unsigned char)at[n]) && at[n] != '_')
            break;
        n++;
    }
    return n;
}

/* The end of what a bracket opens at at[0], with brackets and quotes within it; 0: none. */
static size_t bracket_chars(const char *at, char opens, char closes)
{
    char quote = '\0';
    int depth = 0;
    for (size_t n = 0; at[n]; n++) {
        if (at[n] == '\\' && quote != '\'' && at[n + 1])
            n++;
        else if (quote)
            quote = at[n] == quote ? '\0' : quote;
        else if (at[n] == '\'' || at[n] == '"')
            quote = at[n];
        else if (at[n] == opens)
            depth++;
        else if (at[n] == closes && --depth == 0)
            return n + 1;
    }
    return 0;
}

size_t expand_chars(const char *at)
{
    const char *end = *at == '`' ? strchr(at + 1, '`') : NULL;
    if (end)
        return (size_t)(end - at) + 1;
    if (at[0] != '$' || (at[1] != '{' && at[1] != '('))
        return 0;
    const size_t n = bracket_chars(at + 1, at[1], at[1] == '{' ? '}' : ')');
    return n > 0 ? n + 1 : 0;
}

struct reference {
    const char *name, *word; /* ${name:-word} */
    size_t n_name, n_word, n_chars;
    char operation; /* - = + ? of it; '\0': none */
    bool or_empty;  /* an empty value counts as none */
    bool is_list;   /* ${name[@]} */
};

/* What stands behind the name, up to the bracket. */
static bool read_operation(const char *at, const char *end, struct reference *ref)
{
    ref->is_list = strncmp(at, "[@]", 3) == 0 || strncmp(at, "[*]", 3) == 0;
    at += ref->is_list ? 3 : 0;
    ref->or_empty = *at == ':';
    at += ref->or_empty;
    if (at == end)
        return !ref->or_empty;
    if (!strchr("-=+?", *at))
        return false; /* as of a part of the value, ${name%x} */
    ref->operation = *at;
    ref->word = at + 1;
    ref->n_word = (size_t)(end - at) - 1;
    return true;
}

static bool read_reference(const char *at, struct reference *ref)
{
    const size_t n_chars = expand_chars(at);
    const bool has_bracket = n_chars > 0 && at[1] == '{';
    *ref = (struct reference){.name = at + 1 + has_bracket};
    ref->n_name = at[0] == '$' ? name_chars(ref->name) : 0;
    ref->n_chars = has_bracket ? n_chars : 1 + ref->n_name;
    return ref->n_name > 0 &&
           (!has_bracket || read_operation(ref->name + ref->n_name, at + n_chars - 1, ref));
}

const struct variable *expand_list(const struct variables *variables, const char *word)
{
    struct reference ref;
    const size_t n_quotes = *word == '"';
    if (!read_reference(word + n_quotes, &ref) || ref.operation ||
        strlen(word) != ref.n_chars + 2 * n_quotes || (n_quotes && word[ref.n_chars + 1] != '"'))
        return NULL;
    const struct variable *of = variables_get(variables, ref.name, ref.n_name);
    return of && of->is_list ? of : NULL;
}

/* ---- values ---- */

void expand_quote(const char *text, FILE *out)
{
    fputc('\'', out);
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, out);
    fputc('\'', out);
}

static void put_escaped(const char *value, enum expand_as as, FILE *out)
{
    for (; *value; value++) {
        const bool is_blank = strchr(" \t\r\n", *value) != NULL;
        const bool is_plain = isalnum((unsigned char)*value) || strchr("_-./:@,=+%", *value);
        if (as == EXPAND_BARE ? !is_blank && !is_plain : strchr("\"\\$`", *value) != NULL)
            fputc('\\', out);
        fputc(as == EXPAND_BARE && is_blank ? ' ' : *value, out);
    }
}

static void put_value(const char *value, enum expand_as as, FILE *out)
{
    if (as == EXPAND_BARE || as == EXPAND_QUOTED)
        put_escaped(value, as, out);
    else
        fputs(value, out);
}

/* A command within a command: one word, and not run. */
static void put_command(const char *at, size_t n_chars, enum expand_as as, FILE *out)
{
    char *text = strndup(at, n_chars);
    if (as == EXPAND_QUOTED)
        fputc('"', out);
    if (text && (as == EXPAND_BARE || as == EXPAND_QUOTED))
        expand_quote(text, out);
    else
        fputs(text ? text : "", out);
    if (as == EXPAND_QUOTED)
        fputc('"', out);
    free(text);
}

/* The word of ${NAME:-word}; := keeps it. */
static void put_default(struct expansion *e, const struct reference *ref, enum expand_as as)
{
    char *word = strndup(ref->word, ref->n_word), *name = strndup(ref->name, ref->n_name);
    char *value = NULL;
    size_t n_bytes;
    struct expansion inner = {e->variables, e->others, open_memstream(&value, &n_bytes), false};
    e->lacks_memory |= !word || !name || !inner.out;
    if (word && name && inner.out) {
        expand_text(&inner, word, as == EXPAND_PLAIN ? as : EXPAND_LITERAL);
        e->lacks_memory |= fflush(inner.out) != 0 || inner.lacks_memory;
        if (ref->operation == '=' && value)
            e->lacks_memory |=
                variables_set(e->variables, &(struct variable){name, value, false}) < 0;
        expand_text(e, word, as);
    }
    if (inner.out)
        fclose(inner.out);
    free(value);
    free(word);
    free(name);
}

/* False if the variable has no value here: it stays as it is written. */
static bool put_reference(struct expansion *e, const struct reference *ref, enum expand_as as)
{
    const struct variable *of = shown(e->variables, ref->name, ref->n_name);
    const bool falls_back = ref->operation == '-' || ref->operation == '=';
    if (!of && e->others && !falls_back)
        of = shown(e->others, ref->name, ref->n_name);
    const bool has = of && !(ref->or_empty && !*of->value);
    if (ref->operation == '+' ? has : !has && falls_back)
        put_default(e, ref, as);
    else if (ref->operation == '+')
        return true;
    else if (!has || (of->is_list && as != EXPAND_BARE))
        return false;
    else if (of->is_list)
        fputs(of->value, e->out);
    else
        put_value(of->value, as, e->out);
    return true;
}

/* ---- texts ---- */

/* Behind a backslash a sign is itself. In a literal text the backslash goes, too. */
static void put_behind_backslash(const char *at, char quote, enum expand_as as, FILE *out)
{
    const bool goes = as == EXPAND_LITERAL && (!quote || strchr("\"\\$`\n", at[1]));
    if (!goes)
        fputc('\\', out);
    if (!goes || at[1] != '\n')
        fputc(at[1], out);
}

/* What begins with a dollar sign or a backquote. Returns its length; 0: it is no such thing. */
static size_t put_dollar(struct expansion *e, const char *at, enum expand_as as)
{
    struct reference ref;
    if (as == EXPAND_PLAIN && strncmp(at, "$$", 2) == 0) {
        fputc('$', e->out);
        return 2;
    }
    if (read_reference(at, &ref))
        return put_reference(e, &ref, as) ? ref.n_chars : 0;
    const size_t n_chars = as == EXPAND_PLAIN ? 0 : expand_chars(at);
    if (n_chars > 0)
        put_command(at, n_chars, as, e->out);
    return n_chars;
}

void expand_text(struct expansion *e, const char *text, enum expand_as as)
{
    const bool has_quotes = as == EXPAND_BARE || as == EXPAND_LITERAL;
    char quote = '\0';
    for (const char *at = text; *at; at++) {
        const enum expand_as inner = as == EXPAND_BARE && quote ? EXPAND_QUOTED : as;
        const bool is_mark = has_quotes && (quote ? *at == quote : *at == '\'' || *at == '"');
        const size_t n = quote == '\'' ? 0 : put_dollar(e, at, inner);
        if (n > 0) {
            at += n - 1;
        } else if (*at == '\\' && quote != '\'' && at[1] && as != EXPAND_PLAIN) {
            put_behind_backslash(at++, quote, as, e->out);
        } else {
            if (!is_mark || as == EXPAND_BARE)
                fputc(*at, e->out);
            quote = is_mark ? (char)(quote ? '\0' : *at) : quote;
        }
    }
}

void expand_parentheses(const struct variables *variables, const char *text, FILE *out)
{
    for (const char *at = text; *at; at++) {
        const bool is_escaped = strncmp(at, "$$(", 3) == 0;
        const size_t n_name = strncmp(at, "$(", 2) == 0 ? strcspn(at + 2, ")") : 0;
        const struct variable *of =
            n_name > 0 && at[2 + n_name] ? shown(variables, at + 2, n_name) : NULL;
        if (of)
            fputs(of->value, out);
        else
            fputc(*at, out);
        at += of ? n_name + 2 : is_escaped;
    }
}
