#include "import/recipe_keys.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/nearest.h"

#include "import/flag_words.h"
#include "import/manifest_parts.h"
#include "import/settings.h"
#include "import/words.h"

static const struct place here = {NULL, 0};

/* ---- findings ---- */

int recipe_find(const struct recipe *r, enum finding_kind kind, const char *path, const char *key,
                const char *says)
{
    char what[200];
    snprintf(what, sizeof what, "%.80s%.100s", path, key);
    return facts_find(r->facts, kind, here, what, NULL, says, r->error);
}

enum { MOST_KEYS = 128 };

static int find_unknown(const struct recipe *r, const char *path, const char *key,
                        const struct recipe_key *keys, size_t n)
{
    const char *names[MOST_KEYS];
    char what[300];
    for (size_t i = 0; i < n && i < MOST_KEYS; i++)
        names[i] = keys[i].name;
    const char *near = ifl_nearest(key, names, n < MOST_KEYS ? n : MOST_KEYS);
    snprintf(what, sizeof what, "%.80s%.100s%s%.80s%s", path, key, near ? ": did you mean " : "",
             near ? near : "", near ? "?" : "");
    return facts_find(r->facts, FOUND_UNKNOWN, here, what, NULL, NULL, r->error);
}

static const struct recipe_key *key_of(const char *name, const struct recipe_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

struct keys {
    const struct recipe *r;
    const char *path;
    const struct recipe_key *of;
    size_t n;
    enum server server;
    FILE *out;
};

static int read_key(void *of, const struct node *value)
{
    const struct keys *keys = of;
    const struct recipe *r = keys->r;
    const struct recipe_key *key = key_of(value->key, keys->of, keys->n);
    if (tree_is_null(value))
        return 0;
    if (!key)
        return find_unknown(r, keys->path, value->key, keys->of, keys->n);
    if (key->flag)
        return flag_words_one(key->flag, value, keys->server, keys->out, r->error);
    return key->kind == RECIPE_READ
               ? 0
               : recipe_find(r, (enum finding_kind)key->kind, keys->path, value->key, key->says);
}

int recipe_keys(const struct recipe *r, const struct node *map, const char *path,
                const struct recipe_key *keys, size_t n, enum server server, FILE *out)
{
    struct keys of = {r, path, keys, n, server, out};
    return map && map->kind == NODE_MAP ? settings_each(map, read_key, &of, r->error) : 0;
}

/* ---- values ---- */

int recipe_map(const struct recipe *r, const struct node *map, const char *key,
               const struct node **inner)
{
    char found[128];
    *inner = settings_member(map, key);
    if (!*inner || (*inner)->kind == NODE_MAP)
        return 0;
    return tree_fail(*inner, r->error, "%s is %s, expected a map", key,
                     tree_describe(*inner, found));
}

int recipe_maps(const struct recipe *r, const struct node *map, const char *key, const char *item,
                const struct node **list)
{
    char found[128];
    *list = settings_member(map, key);
    if (*list && (*list)->kind != NODE_LIST)
        return tree_fail(*list, r->error, "%s is %s, expected a list", key,
                         tree_describe(*list, found));
    for (size_t i = 0; *list && i < (*list)->n; i++)
        if ((*list)->of[i]->kind != NODE_MAP)
            return tree_fail((*list)->of[i], r->error, "%s is %s, expected a map", item,
                             tree_describe((*list)->of[i], found));
    return 0;
}

int recipe_text(const struct recipe *r, const struct node *map, const char *key, const char **text)
{
    const struct node *value = settings_member(map, key);
    char found[128];
    *text = tree_text(value);
    if (!value || *text)
        return 0;
    return tree_fail(value, r->error, "%s is %s, expected text", key, tree_describe(value, found));
}

const char *recipe_model(const char *address, const char *otherwise)
{
    static const char hub[] = "hf://";
    const bool is_template = address && strstr(address, "{{");
    if (address && !is_template && strncmp(address, hub, sizeof hub - 1) == 0)
        return address + sizeof hub - 1;
    return otherwise ? otherwise : address;
}

int recipe_replicas(const struct recipe *r, const struct node *map, const char *key)
{
    const char *n = tree_text(settings_member(map, key));
    char what[100];
    if (!n || strcmp(n, "1") == 0)
        return 0;
    snprintf(what, sizeof what, "%.40s: %.40s", key, n);
    return recipe_find(r, FOUND_UNMODELLED, "", what,
                       "this is the configuration of one server: cluster.replicas says how many");
}

int recipe_device(const struct recipe *r, const char *resource)
{
    if (!resource || strncmp(resource, "nvidia.com/", 11) == 0)
        return 0;
    return recipe_find(r, FOUND_UNMODELLED, "", resource, OTHER_DEVICE);
}

/* nvidia.com/gpu, amd.com/gpu, gpu.intel.com/i915 */
static bool is_gpu(const char *resource)
{
    static const char *const names[] = {"/gpu", "/i915", "/xe", "/gaudi", "/tpu", "/npu"};
    const char *slash = strchr(resource, '/');
    for (size_t i = 0; slash && i < sizeof names / sizeof *names; i++)
        if (strcmp(slash, names[i]) == 0)
            return true;
    return false;
}

int recipe_resources(const struct recipe *r, const struct node *map)
{
    const struct node *resources = settings_member(map, "resources");
    const struct node *limits = settings_member(resources, "limits");
    const struct node *asked = limits ? limits : settings_member(resources, "requests");
    char what[100];
    int code = 0;
    if (resources && !asked)
        return recipe_find(r, FOUND_HARMLESS, "", "resources", NULL);
    for (size_t i = 0; asked && asked->kind == NODE_MAP && i < asked->n && code == 0; i++) {
        const char *n = tree_text(asked->of[i]);
        if (!is_gpu(asked->of[i]->key) || !n)
            continue;
        snprintf(what, sizeof what, "%.40s: %.40s", asked->of[i]->key, n);
        code = recipe_find(r, FOUND_HARMLESS, "resources.", what, USED_GPUS);
        code = code == 0 ? recipe_device(r, asked->of[i]->key) : code;
    }
    return code;
}

/* ---- words ---- */

int recipe_variables(const struct recipe *r, const struct node *map, FILE *out)
{
    struct variables own = {0};
    const int code = settings_read(map, r->given, true, &own, r->error);
    if (code == 0)
        settings_put(map, &own, out);
    variables_free(&own);
    return code;
}

int recipe_words(const struct recipe *r, const struct node *map, const char *key, FILE *out)
{
    const struct node *words = settings_member(map, key);
    struct variables own = {0};
    const struct container c = {.map = map, .is_item = true, .given = r->given, .own = &own};
    int code = settings_read(map, r->given, true, &own, r->error);
    if (code == 0 && words)
        code = manifest_put_words(&c, words, out, r->error);
    variables_free(&own);
    return code;
}

/* ---- commands ---- */

int recipe_open(const struct recipe *r, struct recipe_command *command)
{
    *command = (struct recipe_command){0};
    command->out = open_memstream(&command->text, &command->n_bytes);
    return command->out ? 0 : ifl_fail_nomem(r->error);
}

int recipe_end(const struct recipe *r, const struct node *of, struct recipe_command *command,
               int code)
{
    if (fclose(command->out) != 0 && code == 0)
        code = ifl_fail_nomem(r->error);
    if (code == 0)
        return r->take(r->search, of, command->text);
    free(command->text);
    return code;
}

int recipe_read(const struct recipe *r, bool *is_one)
{
    static int (*const kinds[])(const struct recipe *, bool *) = {
        recipe_stack, recipe_llm_d, recipe_kserve, recipe_llm_service, recipe_ray};
    int code = 0;
    *is_one = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !*is_one && code == 0; i++)
        code = kinds[i](r, is_one);
    return code;
}
