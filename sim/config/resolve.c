/* Names to files: the working directory first, then the installed data. */
#include "config/config.h"
#include "config/tree.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#ifndef INFLIGHT_DATADIR
#define INFLIGHT_DATADIR "/usr/local/share/inflight"
#endif

enum { MAX_PATH_BYTES = 512 };

static const char *data_dir(void)
{
    const char *set = getenv("INFLIGHT_DATA");
    return set && *set ? set : INFLIGHT_DATADIR;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int data_path(const char *relative, char found[512])
{
    if (!*relative)
        return IFL_E_INPUT;
    if (snprintf(found, MAX_PATH_BYTES, "%s", relative) < MAX_PATH_BYTES && exists(found))
        return 0;
    if (*relative != '/' &&
        snprintf(found, MAX_PATH_BYTES, "%s/%s", data_dir(), relative) < MAX_PATH_BYTES &&
        exists(found))
        return 0;
    return IFL_E_INPUT;
}

/* ---- lists of names ---- */

static const char *folder_of(const char *kind, char folder[64])
{
    if (strcmp(kind, "traces") == 0)
        return "traces/data";
    snprintf(folder, 64, "configs/%s", kind);
    return folder;
}

static bool is_config(const char *kind)
{
    return strcmp(kind, "traces") != 0;
}

void name_list_free(struct name_list *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->of[i]);
    free(names->of);
    *names = (struct name_list){0};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A name in both places is one name. */
static void sort_once(struct name_list *names)
{
    size_t kept = 0;
    if (names->n)
        qsort(names->of, names->n, sizeof *names->of, by_name);
    for (size_t i = 0; i < names->n; i++) {
        if (kept && strcmp(names->of[kept - 1], names->of[i]) == 0)
            free(names->of[i]);
        else
            names->of[kept++] = names->of[i];
    }
    names->n = kept;
}

static char *stem_of(const char *path, bool cut_extension)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t n_chars = strlen(name) - (cut_extension ? strlen(".yaml") : 0);
    return strndup(name, n_chars);
}

static int take_stems(const glob_t *found, bool cut_extension, struct name_list *names,
                      struct ifl_error *error)
{
    names->of = calloc(found->gl_pathc + 1, sizeof *names->of);
    if (!names->of)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < found->gl_pathc; i++) {
        names->of[i] = stem_of(found->gl_pathv[i], cut_extension);
        if (!names->of[i]) {
            name_list_free(names);
            return ifl_fail_nomem(error);
        }
        names->n++;
    }
    sort_once(names);
    return 0;
}

int config_names(const char *kind, struct name_list *names, struct ifl_error *error)
{
    char folder_text[64], pattern[2][MAX_PATH_BYTES];
    const char *folder = folder_of(kind, folder_text);
    const char *suffix = is_config(kind) ? ".yaml" : "";
    glob_t found = {0};
    *names = (struct name_list){0};
    snprintf(pattern[0], sizeof pattern[0], "%s/*%s", folder, suffix);
    snprintf(pattern[1], sizeof pattern[1], "%s/%s/*%s", data_dir(), folder, suffix);
    for (int i = 0; i < 2; i++) {
        const int code = glob(pattern[i], i ? GLOB_APPEND : 0, NULL, &found);
        if (code == GLOB_NOSPACE) {
            globfree(&found);
            return ifl_fail_nomem(error);
        }
    }
    const int code = take_stems(&found, is_config(kind), names, error);
    globfree(&found);
    return code;
}

/* ---- one name ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n_text = strlen(text), n_end = strlen(end);
    return n_text >= n_end && strcmp(text + n_text - n_end, end) == 0;
}

static bool is_path(const char *name)
{
    return strchr(name, '/') || ends_with(name, ".yaml") || ends_with(name, ".json");
}

static const char *what_of(const char *kind)
{
    if (strcmp(kind, "serving") == 0)
        return "preset";
    return strcmp(kind, "models") == 0 ? "model" : "hardware profile";
}

static int fail_unknown(const char *kind, const char *name, struct ifl_error *error)
{
    struct name_list names;
    char folder[64], list[384] = "";
    if (config_names(kind, &names, error) < 0)
        return error->code;
    const char *near = nearest_word(name, (const char *const *)names.of, names.n);
    for (size_t i = 0, at = 0; i < names.n && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", names.of[i]);
    if (near)
        ifl_fail(error, IFL_E_INPUT, "unknown %s %.100s, did you mean %s?", what_of(kind), name,
                 near);
    else
        ifl_fail(error, IFL_E_INPUT, "unknown %s %.100s, expected one of %s or a path",
                 what_of(kind), name, names.n ? list : folder_of(kind, folder));
    name_list_free(&names);
    return error->code;
}

int config_resolve_name(const char *kind, const char *name, char found[512],
                        struct ifl_error *error)
{
    char relative[MAX_PATH_BYTES];
    if (is_path(name)) {
        snprintf(found, MAX_PATH_BYTES, "%s", name);
        return exists(name) ? 0
                            : ifl_fail(error, IFL_E_INPUT, "there is no file %.200s, expected a %s",
                                       name, what_of(kind));
    }
    snprintf(relative, sizeof relative, "configs/%.64s/%.400s.yaml", kind, name);
    return data_path(relative, found) == 0 ? 0 : fail_unknown(kind, name, error);
}
