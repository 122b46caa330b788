#include "import/settings.h"

#include <stdlib.h>
#include <string.h>

const struct node *settings_member(const struct node *map, const char *key)
{
    const struct node *value = tree_child(map, key), *merged = tree_child(map, "<<");
    if (value || !merged)
        return value && !tree_is_null(value) ? value : NULL;
    if (merged->kind == NODE_MAP)
        return settings_member(merged, key);
    for (size_t i = 0; i < merged->n && !value; i++)
        value = settings_member(merged->of[i], key);
    return value;
}

struct settings_walk {
    const struct node *root;
    settings_visit *visit;
    void *of;
    struct ifl_error *error;
};

static int walk_map(const struct settings_walk *walk, const struct node *map);

/* A map under "<<", or several. */
static int walk_merged(const struct settings_walk *walk, const struct node *merged)
{
    int code = 0;
    if (merged->kind == NODE_MAP)
        return walk_map(walk, merged);
    if (merged->kind == NODE_SCALAR)
        return tree_fail(merged, walk->error, "<< merges what is no map, expected one");
    for (size_t i = 0; i < merged->n && code == 0; i++)
        code = walk_merged(walk, merged->of[i]);
    return code;
}

static int walk_map(const struct settings_walk *walk, const struct node *map)
{
    int code = 0;
    for (size_t i = 0; i < map->n && code == 0; i++) {
        const struct node *value = map->of[i];
        if (strcmp(value->key, "<<") == 0)
            code = walk_merged(walk, value);
        else if (tree_is_null(value) || settings_member(walk->root, value->key) == value)
            code = walk->visit(walk->of, value);
    }
    return code;
}

int settings_each(const struct node *map, settings_visit *visit, void *of, struct ifl_error *error)
{
    return walk_map(&(struct settings_walk){map, visit, of, error}, map);
}

/* ---- variables ---- */

static const char *const variable_keys[] = {"environment", "env", "envs"};
enum { N_KEYS = sizeof variable_keys / sizeof *variable_keys };

/* An item "NAME=value", a map of name and value, or a key with its value. *value is NULL if it is
 * elsewhere. Returns how many characters the name has. */
static size_t split(const struct node *variable, const char **name, const char **value)
{
    const bool is_item = variable->kind == NODE_SCALAR && !variable->key;
    const char *key = is_item ? variable->text : variable->key;
    *name = key ? key : tree_text(settings_member(variable, "name"));
    *value = is_item ? NULL : tree_text(key ? variable : settings_member(variable, "value"));
    const size_t n_chars = *name ? strcspn(*name, is_item ? "=" : "") : 0;
    if (is_item && (*name)[n_chars])
        *value = *name + n_chars + 1;
    return n_chars;
}

char *settings_value(const char *text, const struct expansion *e, const struct variables *of_pod)
{
    char *value = NULL;
    size_t n_bytes;
    struct expansion own = {e->variables, e->others, open_memstream(&value, &n_bytes), false};
    if (!own.out)
        return NULL;
    if (of_pod)
        expand_parentheses(of_pod, text, own.out);
    else
        expand_text(&own, text, EXPAND_PLAIN);
    if (fclose(own.out) == 0 && !own.lacks_memory)
        return value;
    free(value);
    return NULL;
}

static int read_one(const struct node *variable, struct variables *given, bool is_pod,
                    struct variables *own)
{
    const char *name, *written;
    const size_t n_chars = split(variable, &name, &written);
    if (n_chars == 0 || !written)
        return 0;
    char *own_name = strndup(name, n_chars);
    char *value =
        settings_value(written, &(struct expansion){.variables = given}, is_pod ? own : NULL);
    const int code = own_name && value
                         ? variables_set(own, &(struct variable){own_name, value, false})
                         : IFL_E_NOMEM;
    free(own_name);
    free(value);
    return code;
}

/* How many "H100:8" is; 1 without a number. */
static const char *count_of(const struct node *accelerator)
{
    const char *name = accelerator->key ? accelerator->key : accelerator->text;
    const char *colon = name ? strrchr(name, ':') : NULL;
    const char *count = accelerator->key ? tree_text(accelerator) : NULL;
    return count ? count : colon ? colon + 1 : "1";
}

/* GPUs of a node, if all of the accelerators that will do have as many; else NULL. */
static const char *gpus_of(const struct node *accelerators)
{
    const char *n = NULL, *text = tree_text(accelerators),
               *colon = text ? strrchr(text, ':') : NULL;
    if (text)
        return colon ? colon + 1 : "1";
    for (size_t i = 0; accelerators && i < accelerators->n; i++) {
        const char *count = count_of(accelerators->of[i]);
        if (n && strcmp(n, count) != 0)
            return NULL;
        n = count;
    }
    return n;
}

/* https://docs.skypilot.co/en/latest/running-jobs/environment-variables.html */
static int set_skypilot(const struct node *map, struct variables *own)
{
    const struct node *resources = settings_member(map, "resources");
    const char *n_nodes = tree_text(settings_member(map, "num_nodes"));
    const char *n_gpus = gpus_of(settings_member(resources, "accelerators"));
    const struct variable of[] = {{(char[]){"SKYPILOT_NUM_NODES"}, (char *)n_nodes, false},
                                  {(char[]){"SKYPILOT_NUM_GPUS_PER_NODE"}, (char *)n_gpus, false}};
    int code = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of && code == 0; i++)
        if (of[i].value)
            code = variables_set(own, &of[i]);
    return code;
}

int settings_read(const struct node *map, struct variables *given, bool is_pod,
                  struct variables *own, struct ifl_error *error)
{
    int code = 0;
    for (size_t k = 0; k < N_KEYS; k++) {
        const struct node *variables = settings_member(map, variable_keys[k]);
        for (size_t i = 0; variables && i < variables->n && code == 0; i++)
            code = read_one(variables->of[i], given, is_pod, own);
    }
    if (code == 0 && settings_has_script(map))
        code = set_skypilot(map, own);
    return code < 0 ? ifl_fail_nomem(error) : 0;
}

void settings_put(const struct node *map, const struct variables *own, FILE *out)
{
    const char *name, *written;
    for (size_t k = 0; k < N_KEYS; k++) {
        const struct node *variables = settings_member(map, variable_keys[k]);
        for (size_t i = 0; variables && i < variables->n; i++) {
            const size_t n_chars = split(variables->of[i], &name, &written);
            const bool is_set = n_chars > 0 && written;
            const struct variable *of = is_set ? variables_get(own, name, n_chars) : NULL;
            if (n_chars > 0)
                fprintf(out, "%.*s%s", (int)n_chars, name, of ? "=" : " ");
            if (n_chars > 0 && of) {
                expand_quote(of->value, out);
                fputc(' ', out);
            }
        }
    }
}

/* ---- scripts ---- */

static const struct node *lines_of(const struct node *map)
{
    const struct node *commands = settings_member(map, "commands");
    return commands && commands->kind == NODE_LIST ? commands : NULL;
}

bool settings_has_script(const struct node *map)
{
    return tree_text(settings_member(map, "run")) || lines_of(map);
}

/* pip install of setup names the release. */
int settings_script(const struct node *map, const struct variables *own, char **script,
                    struct ifl_error *error)
{
    static const char *const keys[] = {"setup", "run"};
    const struct node *lines = lines_of(map);
    size_t n_bytes;
    FILE *out = open_memstream(script, &n_bytes);
    if (!out)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < own->n; i++) {
        fprintf(out, "%s=", own->of[i].name);
        expand_quote(own->of[i].value, out);
        fputc('\n', out);
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (tree_text(settings_member(map, keys[i])))
            fprintf(out, "%s\n", settings_member(map, keys[i])->text);
    for (size_t i = 0; lines && i < lines->n; i++)
        if (tree_text(lines->of[i]))
            fprintf(out, "%s\n", lines->of[i]->text);
    return fclose(out) == 0 ? 0 : ifl_fail_nomem(error);
}
