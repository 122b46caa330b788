#include "live/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int names_open(struct names *names, uint32_t most)
{
    *names = (struct names){.number_of = json_object(), .most = most};
    return names->number_of ? 0 : IFL_E_NOMEM;
}

void names_close(struct names *names)
{
    for (uint32_t i = 0; i < names->n; i++)
        free(names->of[i]);
    free(names->of);
    json_decref(names->number_of);
    *names = (struct names){0};
}

static int add(struct names *names, const char *name)
{
    if (names->n == names->most)
        return IFL_E_INPUT;
    if (names->n == names->cap) {
        const uint32_t cap = names->cap ? 2 * names->cap : 16;
        if (array_grow(&names->of, names->n, cap, sizeof *names->of) < 0)
            return IFL_E_NOMEM;
        names->cap = cap;
    }
    if (!(names->of[names->n] = strdup(name)))
        return IFL_E_NOMEM;
    if (json_object_set_new(names->number_of, name, json_integer(names->n)) == 0) {
        names->n++;
        return 0;
    }
    free(names->of[names->n]);
    return IFL_E_NOMEM;
}

int names_number(struct names *names, const char *name, uint32_t *number)
{
    const json_t *known = json_object_get(names->number_of, name);
    *number = known ? (uint32_t)json_integer_value(known) : names->n;
    return known ? 0 : add(names, name);
}
