/* Dense numbers for names, in order of appearance. */
#include "traces.h"

#include <string.h>

static int append(struct trace_names *names, const char *name, struct ifl_error *error)
{
    if (trace_reserve(&names->name, &names->cap, names->n + 1, sizeof *names->name, error) < 0)
        return error->code;
    char *copy = strdup(name);
    if (!copy)
        return ifl_fail_nomem(error);
    names->name[names->n++] = copy;
    return 0;
}

int trace_names_number(struct trace_names *names, const char *name, uint32_t *number,
                       struct ifl_error *error)
{
    if (!names->number_of && !(names->number_of = json_object()))
        return ifl_fail_nomem(error);
    const json_t *known = json_object_get(names->number_of, name);
    if (known) {
        *number = (uint32_t)json_integer_value(known);
        return 0;
    }
    *number = (uint32_t)names->n;
    const int rc = append(names, name, error);
    if (rc < 0)
        return rc;
    /* without a check for UTF-8: files may have any bytes, and jansson takes any as a key */
    if (json_object_set_new_nocheck(names->number_of, name, json_integer(*number)) < 0)
        return ifl_fail_nomem(error);
    return 0;
}

void trace_names_free(struct trace_names *names)
{
    json_decref(names->number_of);
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct trace_names){0};
}
