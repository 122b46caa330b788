/* Words of containers, quoted as a shell quotes them. */
#include <stdlib.h>
#include <string.h>

#include "import/manifest_parts.h"
#include "import/settings.h"
#include "import/words.h"

bool manifest_is_pod(const struct container *c)
{
    return c->is_item || settings_member(c->map, "args");
}

void manifest_put_quoted(const char *word, FILE *out)
{
    expand_quote(word, out);
    fputc(' ', out);
}

char *manifest_values(const struct container *c, const char *text)
{
    const struct expansion e = {.variables = c->given, .others = c->own};
    return settings_value(text, &e, manifest_is_pod(c) ? c->own : NULL);
}

/* The words of one text, as Compose splits them: a line's end is a blank. */
static int put_text(const struct container *c, const struct node *text, FILE *out,
                    struct ifl_error *error)
{
    struct words words;
    struct ifl_error wrong = {.code = IFL_E_NOMEM};
    char *value = manifest_values(c, text->text);
    const int split = value ? words_split(value, &words, &wrong) : IFL_E_NOMEM;
    free(value);
    if (split < 0)
        return wrong.code == IFL_E_INPUT ? tree_fail(text, error, "a quote is not closed")
                                         : ifl_fail_nomem(error);
    for (size_t i = 0; i < words.n; i++)
        if (!words.is_break[i])
            manifest_put_quoted(words.of[i], out);
    words_free(&words);
    return 0;
}

/* An item is one word, whatever it has in it: servers refuse "--flag value" as one. */
static int put_item(const struct container *c, const struct node *item, FILE *out,
                    struct ifl_error *error)
{
    char found[128];
    if (item->kind != NODE_SCALAR)
        return tree_fail(item, error, "an item of a command is %s, expected text in quotes",
                         tree_describe(item, found));
    const size_t n_chars = strcspn(item->text, "= \t\n");
    if (item->text[0] == '-' && item->text[n_chars] && item->text[n_chars] != '=')
        return tree_fail(item, error,
                         "%.*s and what follows are one word, expected a flag and its value as two "
                         "items, or with = between them",
                         (int)(n_chars < 100 ? n_chars : 100), item->text);
    char *value = manifest_values(c, item->text);
    manifest_put_quoted(value ? value : "", out);
    free(value);
    return value ? 0 : ifl_fail_nomem(error);
}

int manifest_put_words(const struct container *c, const struct node *words, FILE *out,
                       struct ifl_error *error)
{
    int code = 0;
    if (words && words->kind == NODE_MAP)
        return tree_fail(words, error, "a command is a map, expected words");
    if (words && words->kind == NODE_SCALAR)
        return put_text(c, words, out, error);
    for (size_t i = 0; words && i < words->n && code == 0; i++)
        code = put_item(c, words->of[i], out, error);
    return code;
}
