/* Names to files: the working directory first, then the source tree around a program that is not
 * installed, or the installed data. */
#include "config/config.h"
#include "config/tree.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "inflight/nearest.h"

#ifndef INFLIGHT_DATADIR
#define INFLIGHT_DATADIR "/usr/local/share/inflight"
#endif

enum { MAX_PATH_BYTES = 512 };

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The program is in the build folder, one down. */
static bool find_source_tree(char tree[MAX_PATH_BYTES])
{
    char presets[MAX_PATH_BYTES + 32];
    const ssize_t n = readlink("/proc/self/exe", tree, MAX_PATH_BYTES - 1);
    tree[n > 0 ? n : 0] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(tree, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    snprintf(presets, sizeof presets, "%s/configs/serving", tree);
    return exists(presets);
}

static const char *data_dir(char tree[MAX_PATH_BYTES])
{
    const char *set = getenv("INFLIGHT_DATA");
    if (set && *set)
        return set;
    return find_source_tree(tree) ? tree : INFLIGHT_DATADIR;
}

int data_path(const char *relative, char found[512])
{
    char tree[MAX_PATH_BYTES];
    if (!*relative)
        return IFL_E_INPUT;
    if (snprintf(found, MAX_PATH_BYTES, "%s", relative) < MAX_PATH_BYTES && exists(found))
        return 0;
    if (*relative != '/' &&
        snprintf(found, MAX_PATH_BYTES, "%s/%s", data_dir(tree), relative) < MAX_PATH_BYTES &&
        exists(found))
        return 0;
    return IFL_E_INPUT;
}

static int fail_without(const char *what, const char *folder, struct ifl_error *error)
{
    char tree[MAX_PATH_BYTES];
    return ifl_fail(
        error, IFL_E_INPUT,
        "%sthere is no %s here and none in %.200s; INFLIGHT_DATA may name a folder that "
        "has it, such as the source tree",
        what, folder, data_dir(tree));
}

int data_plot_scripts(char found[512], struct ifl_error *error)
{
    static const char folder[] = "reports/plot";
    return data_path(folder, found) == 0 ? 0 : fail_without("", folder, error);
}

/* ---- lists of names ---- */

struct kind {
    const char *name, *topic, *folder, *pattern, *suffix, *what;
};

static const struct kind *kind_of(const char *name)
{
    static const struct kind kinds[] = {
        {"models", "models", "configs/models", "*.yaml", ".yaml", "model"},
        {"hardware", "hardware", "configs/hardware", "*.yaml", ".yaml", "hardware profile"},
        {"serving", "presets", "configs/serving", "*.yaml", ".yaml", "preset"},
        {"traces", "traces", "traces/data", "*.[cj]s*", "", "trace"},
    };
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].name, name) != 0)
        i++;
    ifl_require(i < sizeof kinds / sizeof *kinds);
    return &kinds[i];
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

static char *stem_of(const char *path, const char *suffix)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strndup(name, strlen(name) - strlen(suffix));
}

static int take_stems(const glob_t *found, const char *suffix, struct name_list *names,
                      struct ifl_error *error)
{
    names->of = calloc(found->gl_pathc + 1, sizeof *names->of);
    if (!names->of)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < found->gl_pathc; i++) {
        names->of[i] = stem_of(found->gl_pathv[i], suffix);
        if (!names->of[i]) {
            name_list_free(names);
            return ifl_fail_nomem(error);
        }
        names->n++;
    }
    sort_once(names);
    return 0;
}

int config_names(const char *kind_name, struct name_list *names, struct ifl_error *error)
{
    const struct kind *kind = kind_of(kind_name);
    char pattern[2][2 * MAX_PATH_BYTES], tree[MAX_PATH_BYTES];
    glob_t found = {0};
    *names = (struct name_list){0};
    snprintf(pattern[0], sizeof pattern[0], "%s/%s", kind->folder, kind->pattern);
    snprintf(pattern[1], sizeof pattern[1], "%s/%s/%s", data_dir(tree), kind->folder,
             kind->pattern);
    for (int i = 0; i < 2; i++) {
        const int code = glob(pattern[i], i ? GLOB_APPEND : 0, NULL, &found);
        if (code == GLOB_NOSPACE) {
            globfree(&found);
            return ifl_fail_nomem(error);
        }
    }
    const int code = take_stems(&found, kind->suffix, names, error);
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

/* All names, or where they are listed if they are too many for a line. */
static const char *name_all(const struct kind *kind, const struct name_list *names, char text[384])
{
    size_t at = 0;
    for (size_t i = 0; i < names->n && at < 384; i++)
        at += (size_t)snprintf(text + at, 384 - at, "%s%s", i ? ", " : "", names->of[i]);
    if (at >= 384)
        snprintf(text, 384, "those that `inflight list %s` names", kind->topic);
    return text;
}

static int fail_unknown(const struct kind *kind, const char *name, struct ifl_error *error)
{
    struct name_list names;
    char list[384];
    if (config_names(kind->name, &names, error) < 0)
        return error->code;
    const char *near = ifl_nearest(name, (const char *const *)names.of, names.n);
    if (names.n == 0) {
        snprintf(list, sizeof list, "unknown %s %.100s: ", kind->what, name);
        fail_without(list, kind->folder, error);
    } else if (near) {
        ifl_fail(error, IFL_E_INPUT, "unknown %s %.100s, did you mean %s?", kind->what, name, near);
    } else {
        ifl_fail(error, IFL_E_INPUT, "unknown %s %.100s, expected one of %s or a path", kind->what,
                 name, name_all(kind, &names, list));
    }
    name_list_free(&names);
    return error->code;
}

int config_resolve_name(const char *kind_name, const char *name, char found[512],
                        struct ifl_error *error)
{
    const struct kind *kind = kind_of(kind_name);
    char relative[MAX_PATH_BYTES];
    if (is_path(name)) {
        snprintf(found, MAX_PATH_BYTES, "%s", name);
        return exists(name) ? 0
                            : ifl_fail(error, IFL_E_INPUT, "there is no file %.200s, expected a %s",
                                       name, kind->what);
    }
    snprintf(relative, sizeof relative, "%s/%.400s%s", kind->folder, name, kind->suffix);
    return data_path(relative, found) == 0 ? 0 : fail_unknown(kind, name, error);
}
