#define PCRE2_CODE_UNIT_WIDTH 8
#include "cost/module_rules.h"

#include <fnmatch.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/error.h"

enum kind { KIND_WORDS, KIND_SHELL, KIND_REGEX };
enum { MOST_TEXT = 512 };

struct module_rule {
    enum kind kind;
    const char *text;
    pcre2_code *code; /* of KIND_REGEX, owned */
};

/* Against an expression that takes forever for some name. */
enum { MATCH_LIMIT = 100000 };

static int open_matcher(struct module_rules *rules)
{
    rules->data = pcre2_match_data_create(1, NULL);
    rules->context = pcre2_match_context_create(NULL);
    if (!rules->data || !rules->context)
        return IFL_E_NOMEM;
    pcre2_set_match_limit(rules->context, MATCH_LIMIT);
    return 0;
}

static int compile(struct module_rules *rules, struct module_rule *rule, const char *text)
{
    int why;
    PCRE2_SIZE at;
    if (!rules->context && open_matcher(rules) < 0)
        return IFL_E_NOMEM;
    rule->code =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_ANCHORED, &why, &at, NULL);
    if (!rule->code)
        return why == PCRE2_ERROR_HEAP_FAILED ? IFL_E_NOMEM : IFL_E_INPUT;
    return 0;
}

static int matches(const struct module_rules *rules, const pcre2_code *code, const char *name)
{
    const int rc =
        pcre2_match(code, (PCRE2_SPTR)name, strlen(name), 0, 0, rules->data, rules->context);
    return rc >= 0 ? 1 : rc == PCRE2_ERROR_NOMATCH ? 0 : IFL_E_INPUT;
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

static int names(const struct module_rules *rules, const struct module_rule *rule, const char *name)
{
    if (rule->kind == KIND_WORDS)
        return has_words(name, rule->text);
    if (rule->kind == KIND_SHELL)
        return is_like(name, rule->text);
    return matches(rules, rule->code, name);
}

/* ---- all ---- */

int module_rules_add(struct module_rules *rules, const char *text)
{
    struct module_rule rule = {.kind = KIND_WORDS, .text = text};
    if (array_room(&rules->of, rules->n, &rules->capacity, 16, sizeof *rules->of) < 0)
        return IFL_E_NOMEM;
    if (strncmp(text, "re:", 3) == 0 || strncmp(text, "-:", 2) == 0)
        rule.kind = KIND_REGEX;
    else if (strpbrk(text, "*?"))
        rule.kind = KIND_SHELL;
    const int code = rule.kind == KIND_REGEX ? compile(rules, &rule, strchr(text, ':') + 1) : 0;
    if (code == 0)
        rules->of[rules->n++] = rule;
    return code;
}

int module_rules_name(const struct module_rules *rules, const char *name)
{
    int named = 0;
    for (size_t i = 0; i < rules->n && named == 0; i++)
        named = names(rules, &rules->of[i], name);
    return named;
}

void module_rules_free(struct module_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++)
        pcre2_code_free(rules->of[i].code);
    pcre2_match_data_free(rules->data);
    pcre2_match_context_free(rules->context);
    free(rules->of);
    *rules = (struct module_rules){.of = NULL};
}
