#include "page/run.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

int page_set(const struct page *page, json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0 ? IFL_OK : ifl_fail_nomem(page->error);
}

int page_append(const struct page *page, json_t *array, json_t *value)
{
    return json_array_append_new(array, value) == 0 ? IFL_OK : ifl_fail_nomem(page->error);
}

json_t *page_text(const char *text)
{
    json_t *as_is = json_string(text);
    char *plain = as_is ? NULL : strdup(text);
    if (!plain)
        return as_is;
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    as_is = json_string(plain);
    free(plain);
    return as_is;
}

json_t *page_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

bool page_has_file(const struct page_run *run, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s/%s", run->dir, name);
    return access(path, F_OK) == 0;
}
