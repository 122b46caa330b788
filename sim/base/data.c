#include "base/data.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inflight/nearest.h"

#include "base/program.h"

enum { MAX_PATH_BYTES = 512, MAX_PLACES = 4, MAX_NEAR = 24 };

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- where the data may be ---- */

/* Folders that may have configs/ and traces/ in them. Only the first that exists is used, so that
 * data of two versions never mix. */
struct places {
    char of[MAX_PLACES][PROGRAM_PATH_BYTES];
    size_t n;
};

/* True if the program is in a build folder directly below a source tree. */
static bool is_source_tree(char tree[PROGRAM_PATH_BYTES])
{
    char presets[PROGRAM_PATH_BYTES + 32];
    program_folder(tree);
    char *slash = strrchr(tree, '/');
    if (!slash)
        return false;
    *slash = '\0';
    snprintf(presets, sizeof presets, "%s/configs/serving", tree);
    return exists(presets);
}

static void find_places(struct places *places)
{
    const char *set = getenv("INFLIGHT_DATA");
    places->n = 0;
    if (set && *set) {
        snprintf(places->of[places->n++], PROGRAM_PATH_BYTES, "%s", set);
        return;
    }
    places->n += is_source_tree(places->of[0]);
    for (size_t i = 0; program_place(PROGRAM_DATA, i, places->of[places->n]); i++)
        places->n++;
}

/* The data's folder; "" if there is none. */
static void find_data(char data[PROGRAM_PATH_BYTES])
{
    struct places places;
    size_t i = 0;
    find_places(&places);
    while (i < places.n && !exists(places.of[i]))
        i++;
    snprintf(data, PROGRAM_PATH_BYTES, "%s", i < places.n ? places.of[i] : "");
}

int data_path(const char *relative, char found[512])
{
    char data[PROGRAM_PATH_BYTES];
    if (!*relative)
        return IFL_E_INPUT;
    if (snprintf(found, MAX_PATH_BYTES, "%s", relative) < MAX_PATH_BYTES && exists(found))
        return 0;
    if (*relative == '/')
        return IFL_E_INPUT;
    find_data(data);
    if (*data && snprintf(found, MAX_PATH_BYTES, "%s/%s", data, relative) < MAX_PATH_BYTES &&
        exists(found))
        return 0;
    return IFL_E_INPUT;
}

static int fail_without(const char *what, const char *folder, struct ifl_error *error)
{
    struct places places;
    char looked[400] = "";
    find_places(&places);
    for (size_t i = 0; i < places.n; i++) {
        const size_t n = strlen(looked);
        snprintf(looked + n, sizeof looked - n, "%s%s", i ? ", " : "", places.of[i]);
    }
    return ifl_fail(error, IFL_E_INPUT,
                    "%sthere is no %s here and none in %s; INFLIGHT_DATA may name a folder that "
                    "has it, such as the source tree",
                    what, folder, looked);
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
        {"deployments", "deployments", "configs/deployments", "*.yaml", ".yaml", "deployment"},
        {"serving", "presets", "configs/serving", "*.yaml", ".yaml", "preset"},
        {"configs", "configs", "configs", "*.yaml", ".yaml", "configuration"},
        {"links", "links", "configs/links", "*.yaml", ".yaml", "link"},
        {"routing", "routers", "configs/routing", "*.yaml", ".yaml", "preset of a router"},
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

/* A name that is in both places is listed once. */
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

/* Escapes the characters of a folder's name that would be a pattern. */
static void escape(const char *folder, char text[2 * PROGRAM_PATH_BYTES])
{
    for (; *folder; folder++) {
        if (strchr("*?[\\", *folder))
            *text++ = '\\';
        *text++ = *folder;
    }
    *text = '\0';
}

/* Searches the working directory and the data. */
static int glob_all(const struct kind *kind, glob_t *found, struct ifl_error *error)
{
    char pattern[2 * PROGRAM_PATH_BYTES + MAX_PATH_BYTES], data[PROGRAM_PATH_BYTES];
    char escaped[2 * PROGRAM_PATH_BYTES];
    snprintf(pattern, sizeof pattern, "%s/%s", kind->folder, kind->pattern);
    int code = glob(pattern, 0, NULL, found);
    find_data(data);
    escape(data, escaped);
    if (*data && code != GLOB_NOSPACE) {
        snprintf(pattern, sizeof pattern, "%s/%s/%s", escaped, kind->folder, kind->pattern);
        code = glob(pattern, GLOB_APPEND, NULL, found);
    }
    return code == GLOB_NOSPACE ? ifl_fail_nomem(error) : 0;
}

int data_names(const char *kind_name, struct name_list *names, struct ifl_error *error)
{
    const struct kind *kind = kind_of(kind_name);
    glob_t found = {0};
    *names = (struct name_list){0};
    int code = glob_all(kind, &found, error);
    if (code == 0)
        code = take_stems(&found, kind->suffix, names, error);
    globfree(&found);
    if (code == 0 && names->n == 0) {
        name_list_free(names);
        code = fail_without("", kind->folder, error);
    }
    return code;
}

/* ---- one name ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n_text = strlen(text), n_end = strlen(end);
    return n_text >= n_end && strcmp(text + n_text - n_end, end) == 0;
}

bool data_is_path(const char *name)
{
    return strchr(name, '/') || ends_with(name, ".yaml") || ends_with(name, ".json");
}

/* All names; if they are too many for a line, the command that lists them. */
static const char *name_all(const struct kind *kind, const struct name_list *names, char text[384])
{
    size_t at = 0;
    for (size_t i = 0; i < names->n && at < 384; i++)
        at += (size_t)snprintf(text + at, 384 - at, "%s%s", i ? ", " : "", names->of[i]);
    if (at >= 384)
        snprintf(text, 384, "those that `inflight list %s` names", kind->topic);
    return text;
}

/* "a, b or c" */
static const char *name_near(const char *const *near, size_t n, char text[384])
{
    size_t at = 0;
    for (size_t i = 0; i < n && at < 384; i++)
        at += (size_t)snprintf(text + at, 384 - at, "%s%s",
                               i == 0      ? ""
                               : i + 1 < n ? ", "
                                           : " or ",
                               near[i]);
    return text;
}

static int fail_unknown(const struct kind *kind, const char *name, struct ifl_error *error)
{
    struct name_list names;
    const char *near[MAX_NEAR];
    char list[384], reason[sizeof error->text];
    if (data_names(kind->name, &names, error) < 0) {
        snprintf(reason, sizeof reason, "%s", error->text);
        return error->code == IFL_E_INPUT
                   ? ifl_fail(error, IFL_E_INPUT, "unknown %s %.100s: %.640s", kind->what, name,
                              reason)
                   : error->code;
    }
    const size_t n_near =
        ifl_nearest_names(name, (const char *const *)names.of, names.n, near, MAX_NEAR);
    if (n_near > 0 && n_near <= MAX_NEAR)
        ifl_fail(error, IFL_E_INPUT, "unknown %s %.100s, did you mean %s?", kind->what, name,
                 name_near(near, n_near, list));
    else
        ifl_fail(error, IFL_E_INPUT, "unknown %s %.100s, expected one of %s or a path", kind->what,
                 name, name_all(kind, &names, list));
    name_list_free(&names);
    return error->code;
}

int data_resolve(const char *kind_name, const char *name, char found[512], struct ifl_error *error)
{
    const struct kind *kind = kind_of(kind_name);
    char relative[MAX_PATH_BYTES];
    if (data_is_path(name)) {
        snprintf(found, MAX_PATH_BYTES, "%s", name);
        return exists(name) ? 0
                            : ifl_fail(error, IFL_E_INPUT, "there is no file %.200s, expected a %s",
                                       name, kind->what);
    }
    snprintf(relative, sizeof relative, "%s/%.400s%s", kind->folder, name, kind->suffix);
    return data_path(relative, found) == 0 ? 0 : fail_unknown(kind, name, error);
}

/* ---- configurations ---- */

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* "NAME.yaml", as it is or below configs/, here or in the data. */
static bool is_config(const char *folder, const char *name, const char *suffix, bool in_data,
                      char found[MAX_PATH_BYTES])
{
    char relative[MAX_PATH_BYTES];
    if (snprintf(relative, sizeof relative, "%s%s%s", folder, name, suffix) >= MAX_PATH_BYTES)
        return false;
    if (in_data)
        return data_path(relative, found) == 0 && !is_folder(found);
    snprintf(found, MAX_PATH_BYTES, "%s", relative);
    return exists(found) && !is_folder(found);
}

/* The names of the files here, and of those that come with inflight. */
static int names_of_configs(struct name_list *names, struct ifl_error *error)
{
    const struct kind *kind = kind_of("configs");
    glob_t found = {0};
    int code = glob_all(kind, &found, error);
    if (code == 0 && glob(kind->pattern, GLOB_APPEND, NULL, &found) == GLOB_NOSPACE)
        code = ifl_fail_nomem(error);
    if (code == 0)
        code = take_stems(&found, kind->suffix, names, error);
    globfree(&found);
    return code;
}

static int fail_config(const char *name, struct ifl_error *error)
{
    struct name_list names = {0};
    char stem[MAX_PATH_BYTES];
    const int n_chars = (int)strlen(name) - (ends_with(name, ".yaml") ? 5 : 0);
    snprintf(stem, sizeof stem, "%.*s", n_chars, name);
    if (names_of_configs(&names, error) < 0)
        return error->code;
    const char *near = ifl_nearest(stem, (const char *const *)names.of, names.n);
    if (near)
        ifl_fail_at(error, name, 0, 0,
                    "cannot be opened: No such file or directory, did you mean %s?", near);
    else
        ifl_fail_at(error, name, 0, 0,
                    "cannot be opened: No such file or directory, nor is it of `inflight list "
                    "configs`");
    name_list_free(&names);
    return error->code;
}

int data_find_config(const char *name, char found[512], struct ifl_error *error)
{
    const bool has_suffix = ends_with(name, ".yaml");
    if (is_config("", name, "", false, found) ||
        (!has_suffix && is_config("", name, ".yaml", false, found)) ||
        is_config("configs/", name, has_suffix ? "" : ".yaml", true, found) ||
        is_config("", name, has_suffix ? "" : ".yaml", true, found))
        return 0;
    snprintf(found, MAX_PATH_BYTES, "%s", name);
    return exists(name) ? 0 : fail_config(name, error);
}
