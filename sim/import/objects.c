#include "import/objects.h"

#include <stdlib.h>
#include <string.h>

#include "import/words.h"

enum { MOST_LEVELS = 8 }; /* an object further in is text: each level is read once more */

static const double MOST = 1e15; /* what a long long surely holds */

static json_t *read_printed(char *list, int level);

/* A value as Python prints it, its quotes already gone. */
static json_t *read_value(char *text, int level)
{
    if (strcmp(text, "None") == 0)
        return json_null();
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        return json_boolean(*text == 'T');
    if (*text == '{' && level < MOST_LEVELS)
        return read_printed(text + 1, level + 1);
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    return value ? value : json_string(text);
}

static json_t *read_printed(char *list, int level)
{
    struct argument argument;
    json_t *object = json_object();
    while (argument_next(&list, &argument))
        if (argument.value)
            json_object_set_new(object, argument.name, read_value(argument.value, level));
    return object;
}

json_t *object_read(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);
    const char *open = strpbrk(text, "{(");
    char *copy = object || !open ? NULL : strdup(open + 1);
    if (copy)
        object = read_printed(copy, 0);
    free(copy);
    if (json_is_object(object))
        return object;
    json_decref(object);
    return NULL;
}

json_t *object_of(const struct facts *facts, const char *name)
{
    json_t *all = NULL;
    for (size_t i = facts->n; i-- > 0;) { /* of what is said twice, what is said first stays */
        json_t *one = strcmp(facts->of[i].name, name) == 0 ? object_read(facts->of[i].value) : NULL;
        if (all && one)
            json_object_update_recursive(all, one);
        else if (one)
            all = json_incref(one);
        json_decref(one);
    }
    return all;
}

void object_nest(const char *path, char *value, size_t n_bytes)
{
    char copy[128], *names[8], *next = copy;
    size_t n = 0;
    json_t *inner = json_loads(value, JSON_DECODE_ANY, NULL);
    if (!inner)
        inner = json_string(value);
    snprintf(copy, sizeof copy, "%s", path);
    for (char *c = copy; *c; c++)
        *c = *c == '-' ? '_' : *c;
    while (next && n < sizeof names / sizeof *names) {
        names[n++] = next;
        next = strchr(next, '.');
        if (next)
            *next++ = '\0';
    }
    for (; n > 0; n--)
        inner = json_pack("{s: o}", names[n - 1], inner);
    char *text = inner ? json_dumps(inner, 0) : NULL;
    if (text)
        snprintf(value, n_bytes, "%s", text);
    free(text);
    json_decref(inner);
}

const char *object_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

double object_number(const json_t *object, const char *name, double dflt)
{
    const json_t *member = json_object_get(object, name);
    const char *text = json_string_value(member);
    char *end = NULL;
    const double x = text ? strtod(text, &end) : json_number_value(member);
    const bool is_number = json_is_number(member) || (text && end != text && !*end);
    return is_number && x > -MOST && x < MOST ? x : dflt;
}

long long object_count(const json_t *object, const char *name, long long dflt)
{
    const double x = object_number(object, name, (double)dflt);
    return x <= MOST_COUNT ? (long long)x : dflt;
}
