#include "import/shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "import/words.h"

struct script {
    struct expansion e;
    int depth;            /* of if, case and loops */
    bool starts;          /* a command does: assignments may stand here */
    bool is_test;         /* the command is [ ... ] or its like */
    bool is_conditional;  /* the command stands behind a test and && or behind || */
    bool names_loop;      /* the next word is the variable of a loop */
    bool is_of_container; /* the next word is behind -e */
};

/* NAME= or NAME+=: how long it is; 0: it is none. */
static size_t assignment(const char *word)
{
    size_t n = 0;
    while (isalnum((unsigned char)word[n]) || word[n] == '_')
        n++;
    if (n == 0 || isdigit((unsigned char)*word))
        return 0;
    n += word[n] == '+' && word[n + 1] == '=';
    return word[n] == '=' ? n + 1 : 0;
}

/* A list goes to its bracket, over ends of lines. */
static size_t list_chars(const char *at)
{
    char quote = '\0';
    size_t n = 1;
    for (; at[n] && (quote || at[n] != ')'); n++) {
        if (at[n] == '\\' && quote != '\'' && at[n + 1])
            n++;
        else if (!quote && at[n] == '#' && strchr(" \t\n(", at[n - 1]))
            n += strcspn(at + n, "\n") - 1;
        else if (quote ? at[n] == quote : at[n] == '\'' || at[n] == '"')
            quote = (char)(quote ? '\0' : at[n]);
    }
    return n + (at[n] == ')');
}

static size_t word_chars(const char *at)
{
    const size_t n_name = assignment(at);
    char quote = '\0';
    size_t n = n_name;
    if (n_name > 0 && at[n_name] == '(')
        return n_name + list_chars(at + n_name);
    while (at[n] && (quote || !strchr(" \t\r\n;&|<>", at[n]))) {
        const size_t n_inner = quote == '\'' ? 0 : expand_chars(at + n);
        if (n_inner == 0 && at[n] == '\\' && quote != '\'' && at[n + 1])
            n++;
        else if (n_inner == 0 && (quote ? at[n] == quote : at[n] == '\'' || at[n] == '"'))
            quote = (char)(quote ? '\0' : at[n]);
        n += n_inner > 0 ? n_inner : 1;
    }
    return n;
}

/* ---- assignments ---- */

/* The words of a list, each in quotes. */
static int quote_words(const char *text, FILE *out)
{
    struct words words;
    struct ifl_error wrong;
    if (words_split(text, &words, &wrong) < 0)
        return wrong.code == IFL_E_INPUT ? 0 : wrong.code;
    for (size_t i = 0; i < words.n; i++)
        if (!words.is_break[i]) {
            expand_quote(words.of[i], out);
            fputc(' ', out);
        }
    words_free(&words);
    return 0;
}

/* The value behind the sign; of a list, its words. */
static void put_right(struct script *s, const char *right, bool is_list, FILE *out)
{
    char *text = NULL;
    size_t n_bytes;
    struct expansion inner = {s->e.variables, NULL, is_list ? open_memstream(&text, &n_bytes) : out,
                              false};
    char *list = is_list ? strndup(right + 1, strlen(right) - 2) : NULL;
    s->e.lacks_memory |= !inner.out || (is_list && !list);
    if (inner.out && (!is_list || list))
        expand_text(&inner, is_list ? list : right, is_list ? EXPAND_BARE : EXPAND_LITERAL);
    s->e.lacks_memory |= inner.lacks_memory;
    if (is_list && inner.out)
        s->e.lacks_memory |= fclose(inner.out) != 0 || quote_words(text, out) < 0;
    free(list);
    free(text);
}

/* The word "NAME=value" with its n characters of a name and a sign. */
static char *read_value(struct script *s, const char *word, size_t n, bool is_list)
{
    char *value = NULL;
    size_t n_bytes;
    FILE *out = open_memstream(&value, &n_bytes);
    const bool appends = word[n - 2] == '+';
    const struct variable *before = appends ? variables_get(s->e.variables, word, n - 2) : NULL;
    if (!out)
        return NULL;
    if (before)
        fputs(before->value, out);
    put_right(s, word + n, is_list, out);
    return fclose(out) == 0 ? value : NULL;
}

static void put_assignment(struct script *s, const char *word, size_t n)
{
    const size_t n_name = n - 1 - (n > 1 && word[n - 2] == '+');
    const bool is_list = word[n] == '(' && word[strlen(word) - 1] == ')';
    char *name = strndup(word, n_name), *value = name ? read_value(s, word, n, is_list) : NULL;
    const bool is_known = s->depth == 0 && !s->is_conditional;
    if (!value ||
        (is_known && variables_set(s->e.variables, &(struct variable){name, value, is_list}) < 0))
        s->e.lacks_memory = true;
    else if (!is_known)
        variables_forget(s->e.variables, name);
    if (value && is_list) {
        expand_quote(word, s->e.out);
    } else if (value) {
        fprintf(s->e.out, "%s=", name);
        expand_quote(value, s->e.out);
    }
    free(name);
    free(value);
}

/* ---- words ---- */

/* Where a command begins, words that open or close a condition. */
static int depth_of(const char *word)
{
    static const char *const opens[] = {"if", "case", "for", "while", "until", "select", NULL};
    static const char *const closes[] = {"fi", "esac", "done", NULL};
    return word_is_one_of(word, opens) - word_is_one_of(word, closes);
}

/* Words behind which a command still begins. */
static bool is_front(const char *word)
{
    static const char *const fronts[] = {"export",  "then",     "do",      "else",  "elif", "if",
                                         "while",   "until",    "time",    "!",     "{",    "env",
                                         "exec",    "sudo",     "declare", "local", "set",  "nohup",
                                         "typeset", "readonly", NULL};
    return word[0] == '-' || word_is_one_of(word, fronts);
}

static void follow(struct script *s, const char *word)
{
    static const char *const tests[] = {"[", "[[", "test", NULL};
    static const char *const loops[] = {"for", "select", NULL};
    static const char *const options[] = {"-e", "--env", NULL};
    const bool is_branch = s->depth > 0 && word[strlen(word) - 1] == ')';
    s->names_loop = s->starts && word_is_one_of(word, loops);
    s->is_test = s->is_test || (s->starts && word_is_one_of(word, tests));
    s->depth += s->starts ? depth_of(word) : 0;
    s->depth = s->depth < 0 ? 0 : s->depth;
    s->is_of_container = word_is_one_of(word, options);
    s->starts = is_branch || (s->starts && is_front(word));
}

static void put_word(struct script *s, const char *word)
{
    const size_t n_name = s->starts || s->is_of_container ? assignment(word) : 0;
    const struct variable *list = expand_list(s->e.variables, word);
    if (n_name > 0) {
        put_assignment(s, word, n_name);
        s->is_of_container = false;
        return;
    }
    if (s->names_loop)
        variables_forget(s->e.variables, word);
    if (list)
        fputs(list->value, s->e.out);
    else
        expand_text(&s->e, word, EXPAND_BARE);
    follow(s, word);
}

/* ---- what stands between words ---- */

/* A command ends at an operator, and at a line's end unless the next line goes on with a flag. */
static void end_command(struct script *s, const char *at)
{
    const bool is_and = strncmp(at, "&&", 2) == 0, is_or = strncmp(at, "||", 2) == 0;
    s->is_conditional = is_or || (is_and && (s->is_test || s->is_conditional));
    s->is_test = false;
    s->starts = true;
}

/* Returns how many characters are no word: blanks, ends of lines, an operator, a comment. */
static size_t put_gap(struct script *s, const char *at)
{
    size_t n = *at == '#' ? strcspn(at, "\n") : 0;
    if (at[0] == '\\' && (at[1] == '\n' || (at[1] == '\r' && at[2] == '\n'))) {
        n = at[1] == '\n' ? 2 : 3;
    } else if (*at == '\n' && at[strspn(at, " \t\r\n")] == '-') {
        n = 1;
    } else if (*at == '\n' || strchr(";&|", *at) != NULL) {
        n = strspn(at, ";&|") + (*at == '\n');
        end_command(s, at);
    } else if (strchr(" \t\r<>", *at) != NULL) {
        n = 1;
    }
    fwrite(at, 1, n, s->e.out);
    return n;
}

int shell_expand(const char *script, struct variables *variables, char **expanded,
                 struct ifl_error *error)
{
    size_t n_bytes, n;
    struct script s = {.e = {.variables = variables, .out = open_memstream(expanded, &n_bytes)},
                       .starts = true};
    if (!s.e.out)
        return ifl_fail_nomem(error);
    for (const char *at = script; *at; at += n) {
        n = put_gap(&s, at);
        if (n > 0)
            continue;
        n = word_chars(at);
        char *word = strndup(at, n);
        if (word)
            put_word(&s, word);
        s.e.lacks_memory |= !word;
        free(word);
    }
    if (fclose(s.e.out) == 0 && !s.e.lacks_memory)
        return 0;
    free(*expanded);
    *expanded = NULL;
    return ifl_fail_nomem(error);
}

size_t shell_settings(const char *text)
{
    size_t n_settings = 0;
    for (const char *at = text; *at;) {
        const char *word = at + strspn(at, " \t\r\n");
        const size_t n_line = strcspn(word, "\n");
        const size_t n_name = assignment(word);
        if (*word != '#' && (n_name == 0 || word_chars(word) > n_line))
            break;
        at = word + n_line + (word[n_line] == '\n');
        n_settings = n_name > 0 ? (size_t)(at - text) : n_settings;
    }
    return n_settings;
}
