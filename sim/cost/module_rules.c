#include "cost/module_rules.h"

#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"

enum kind { KIND_WORDS, KIND_SHELL, KIND_REGEX };
enum { MOST_TEXT = 512 };

struct module_rule {
    enum kind kind;
    const char *text;
    regex_t begins, not_; /* of KIND_REGEX; the second one for what a lookahead excludes */
    bool excludes;
};

/* ---- regular expressions ---- */

/* Where the parenthesis that is open at `text` is closed; NULL: nowhere. */
static const char *closing(const char *text)
{
    int depth = 1;
    for (; *text; text++) {
        if (*text == '\\' && text[1])
            text++;
        else if (*text == '(')
            depth++;
        else if (*text == ')' && --depth == 0)
            return text;
    }
    return NULL;
}

struct translation {
    const char *from, *end;
    char to[MOST_TEXT];
    size_t n;
    bool in_brackets; /* where a backslash of POSIX stands for itself */
};

static void put(struct translation *of, const char *text)
{
    of->n += (size_t)snprintf(of->to + of->n, sizeof of->to - of->n, "%s", text);
}

static void translate_escape(struct translation *of)
{
    const char escaped = of->from[1], both[] = {'\\', escaped, '\0'};
    of->from += 2;
    if (escaped == 'd')
        put(of, of->in_brackets ? "0-9" : "[0-9]");
    else
        put(of, both + of->in_brackets);
}

/* False: POSIX lacks it; or it is a count, whose expression may take any amount of memory. */
static bool translate_one(struct translation *of)
{
    const char c = of->from[0], one[] = {c, '\0'};
    if (c == '\\' && of->from + 1 < of->end) {
        translate_escape(of);
        return true;
    }
    if (c == '[' || c == ']')
        of->in_brackets = c == '[';
    if (c == '{' || (c == '(' && of->from[1] == '?' && of->from[2] != ':'))
        return false;
    const bool is_group = c == '(' && of->from[1] == '?' && !of->in_brackets;
    const bool is_short = c == '?' && strchr("*+?", of->from[-1]) && !of->in_brackets;
    put(of, is_short ? "" : one);
    of->from += is_group ? 3 : 1;
    return true;
}

/* Python's expression as an extended one of POSIX: digits, groups, and repetitions as short as
 * possible, which match the same names. False: it has other parts that POSIX lacks, or is too long.
 * `from` stands behind another character. */
static bool translate(const char *from, const char *end, char to[MOST_TEXT])
{
    struct translation of = {.from = from, .end = end};
    put(&of, "^(");
    while (of.from < end && of.n + 8 < MOST_TEXT)
        if (!translate_one(&of))
            return false;
    put(&of, ")");
    memcpy(to, of.to, MOST_TEXT);
    return of.from == end;
}

static bool compile(const char *from, const char *end, regex_t *regex)
{
    char text[MOST_TEXT];
    return translate(from, end, text) && regcomp(regex, text, REG_EXTENDED | REG_NOSUB) == 0;
}

static bool compile_rule(struct module_rule *rule, const char *text)
{
    static const char lookahead[] = "(?!";
    const char *rest = text + (*text == '^');
    if (strncmp(rest, lookahead, sizeof lookahead - 1) == 0) {
        const char *inner = rest + sizeof lookahead - 1, *end = closing(inner);
        if (!end || !compile(inner, end, &rule->not_))
            return false;
        rule->excludes = true;
        text = end + 1;
    }
    if (compile(text, text + strlen(text), &rule->begins))
        return true;
    if (rule->excludes)
        regfree(&rule->not_);
    return false;
}

/* ---- one rule ---- */

static bool is_word_end(char c)
{
    return c == '\0' || c == '.';
}

static bool has_words(const char *name, const char *words)
{
    size_t n = strlen(words);
    while (n > 0 && words[n - 1] == '.')
        n--;
    for (const char *at = name; n > 0 && at; at = strchr(at, '.')) {
        at += *at == '.';
        if (strncmp(at, words, n) == 0 && is_word_end(at[n]))
            return true;
    }
    return false;
}

static bool is_like(const char *name, const char *pattern)
{
    char inside[MOST_TEXT];
    snprintf(inside, sizeof inside, "%s.*", pattern);
    return fnmatch(pattern, name, 0) == 0 || fnmatch(inside, name, 0) == 0;
}

static bool names(const struct module_rule *rule, const char *name)
{
    if (rule->kind == KIND_WORDS)
        return has_words(name, rule->text);
    if (rule->kind == KIND_SHELL)
        return is_like(name, rule->text);
    return regexec(&rule->begins, name, 0, NULL, 0) == 0 &&
           !(rule->excludes && regexec(&rule->not_, name, 0, NULL, 0) == 0);
}

/* ---- all ---- */

static int grow(struct module_rules *rules)
{
    const size_t capacity = rules->capacity > 0 ? 2 * rules->capacity : 16;
    struct module_rule *of = realloc(rules->of, capacity * sizeof *of);
    if (!of)
        return IFL_E_NOMEM;
    rules->of = of;
    rules->capacity = capacity;
    return 0;
}

int module_rules_add(struct module_rules *rules, const char *text)
{
    struct module_rule rule = {.kind = KIND_WORDS, .text = text};
    if (rules->n == rules->capacity && grow(rules) < 0)
        return IFL_E_NOMEM;
    if (strncmp(text, "re:", 3) == 0 || strncmp(text, "-:", 2) == 0)
        rule.kind = KIND_REGEX;
    else if (strpbrk(text, "*?"))
        rule.kind = KIND_SHELL;
    if (rule.kind == KIND_REGEX && !compile_rule(&rule, strchr(text, ':') + 1))
        return IFL_E_INPUT;
    rules->of[rules->n++] = rule;
    return 0;
}

bool module_rules_name(const struct module_rules *rules, const char *name)
{
    size_t i = 0;
    while (i < rules->n && !names(&rules->of[i], name))
        i++;
    return i < rules->n;
}

void module_rules_free(struct module_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        struct module_rule *rule = &rules->of[i];
        if (rule->kind != KIND_REGEX)
            continue;
        regfree(&rule->begins);
        if (rule->excludes)
            regfree(&rule->not_);
    }
    free(rules->of);
    *rules = (struct module_rules){.of = NULL};
}
