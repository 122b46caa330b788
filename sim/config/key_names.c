/* The names of all keys, and the search for the nearest valid name of a misspelt key. */
#include "config/keys.h"

#include <string.h>

#include "inflight/nearest.h"

#include "base/server_flags.h"
#include "config/registry.h"

const char *key_join(const char *where, const char *name, char path[MAX_KEY_CHARS])
{
    snprintf(path, MAX_KEY_CHARS, "%s%s%s", where, *where ? "." : "", name);
    return path;
}

/* The name of the map `path` within the map `where`, or NULL if it is not directly below. */
static const char *name_below(const char *where, const char *path)
{
    const size_t n_chars = strlen(where);
    if (strncmp(path, where, n_chars) != 0 || !path[n_chars])
        return NULL;
    if (n_chars && path[n_chars] != '.')
        return NULL;
    const char *name = path + n_chars + (n_chars > 0);
    return strchr(name, '.') ? NULL : name;
}

void key_others(const struct key_section *section, const char *others[MAX_KEYS_BELOW + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < section->keys->n_by_hand && n < MAX_KEYS_BELOW; i++)
        others[n++] = section->keys->by_hand[i].name;
    for (size_t i = 0; i < n_key_sections && n < MAX_KEYS_BELOW; i++) {
        const char *name = name_below(section->where, key_sections[i].where);
        if (name)
            others[n++] = name;
    }
    others[n] = NULL;
}

/* The numbers of characters in "serving.admit" and ".1" of "serving.admit.1.max_rpm". */
struct number_in_key {
    size_t n_list, n_number; /* n_number 0: there is none */
};

static struct number_in_key number_in(const char *dotted)
{
    for (size_t i = 0; i < n_key_sections; i++) {
        const size_t n_list = strlen(key_sections[i].where);
        if (!key_sections[i].may_be_list || strncmp(dotted, key_sections[i].where, n_list) != 0 ||
            dotted[n_list] != '.')
            continue;
        const size_t n_digits = strspn(dotted + n_list + 1, "0123456789");
        const char end = dotted[n_list + 1 + n_digits];
        if (n_digits > 0 && (end == '.' || end == '\0'))
            return (struct number_in_key){n_list, n_digits + 1};
    }
    return (struct number_in_key){0};
}

const char *key_plain(const char *dotted, char plain[MAX_KEY_CHARS])
{
    static const char intervals[] = "deployment.intervals.";
    if (strcmp(dotted, "deployment.intervals.correlations") == 0) {
        snprintf(plain, MAX_KEY_CHARS, "deployment.intervals");
        return plain;
    }
    if (strncmp(dotted, intervals, sizeof intervals - 1) == 0) {
        snprintf(plain, MAX_KEY_CHARS, "deployment.%s", dotted + sizeof intervals - 1);
        return plain;
    }
    const struct number_in_key number = number_in(dotted);
    snprintf(plain, MAX_KEY_CHARS, "%.*s%s", (int)number.n_list, dotted,
             dotted + number.n_list + number.n_number);
    return plain;
}

const char *key_in_pool(const char *dotted)
{
    static const char before[] = "cluster.pools.";
    if (strncmp(dotted, before, strlen(before)) != 0)
        return NULL;
    const char *name = dotted + strlen(before), *dot = strchr(name, '.');
    return dot ? dot + 1 : name + strlen(name);
}

static const char *const of_pools[] = {"count",    "role",    "model",      "hardware", "dtype",
                                       "parallel", "serving", "deployment", "cost"};
enum { N_OF_POOLS = sizeof of_pools / sizeof *of_pools };

bool key_is_of_pools(const char *dotted)
{
    for (size_t i = 2; i < N_OF_POOLS; i++) {
        const size_t n = strlen(of_pools[i]);
        if (strncmp(dotted, of_pools[i], n) == 0 && (dotted[n] == '\0' || dotted[n] == '.'))
            return true;
    }
    return false;
}

const struct ifl_param *key_field(const char *dotted)
{
    for (size_t i = 0; i < n_key_sections; i++) {
        const struct key_section *section = &key_sections[i];
        const char *name = name_below(section->where, dotted);
        for (size_t k = 0; name && !section->is_deployment && k < section->keys->n_fields; k++)
            if (strcmp(section->keys->fields[k].name, name) == 0)
                return &section->keys->fields[k];
    }
    return NULL;
}

bool key_is_section(const char *dotted)
{
    const size_t n_chars = strlen(dotted);
    for (size_t i = 0; i < n_key_sections; i++)
        if (strncmp(key_sections[i].where, dotted, n_chars) == 0 &&
            (!key_sections[i].where[n_chars] || key_sections[i].where[n_chars] == '.'))
            return true;
    return false;
}

bool key_has_short_form(const char *dotted)
{
    char plain[MAX_KEY_CHARS];
    const char *inner = key_in_pool(dotted);
    const char *where = key_plain(inner ? inner : dotted, plain);
    if (strcmp(where, "workload.filter") == 0 || strcmp(where, "deployment") == 0)
        return true;
    for (size_t i = 0; i < n_key_sections; i++)
        if (key_sections[i].is_module && strcmp(key_sections[i].where, where) == 0)
            return true;
    return false;
}

/* ---- all of them ---- */

struct key_names {
    char (*of)[MAX_KEY_CHARS];
    const char **words; /* pointers to `of`, as ifl_nearest takes them */
    size_t n, n_values; /* the values come first, then the maps */
    size_t cap;
};

static void add(struct key_names *names, const char *where, const char *name)
{
    if (names->n < names->cap)
        names->words[names->n] = key_join(where, name, names->of[names->n]);
    names->n++;
}

static void add_module(struct key_names *names, const struct key_section *section)
{
    const struct ifl_policy *policy;
    for (size_t i = 0; (policy = registry_at(i)); i++)
        for (size_t j = 0; policy->kind == section->kind && j < policy->n_params; j++)
            add(names, section->where, policy->params[j].name);
}

static void add_all(struct key_names *names)
{
    names->n = 0;
    for (size_t i = 0; i < n_key_sections; i++) {
        const struct key_section *section = &key_sections[i];
        for (size_t j = 0; j < section->keys->n_fields; j++)
            add(names, section->where, section->keys->fields[j].name);
        for (size_t j = 0; j < section->keys->n_by_hand; j++)
            add(names, section->where, section->keys->by_hand[j].name);
        if (section->is_module)
            add_module(names, section);
    }
    names->n_values = names->n;
    for (size_t i = 1; i < n_key_sections; i++)
        add(names, "", key_sections[i].where);
}

static void free_names(struct key_names *names)
{
    free(names->of);
    free(names->words);
}

/* The first round counts the names, the second fills them in. */
static int gather(struct key_names *names, struct ifl_error *error)
{
    *names = (struct key_names){0};
    add_all(names);
    names->cap = names->n;
    names->of = calloc(names->cap + 1, sizeof *names->of);
    names->words = calloc(names->cap + 1, sizeof *names->words);
    if (!names->of || !names->words) {
        free_names(names);
        return ifl_fail_nomem(error);
    }
    add_all(names);
    ifl_require(names->n == names->cap);
    return 0;
}

/* True if the path ends in the key: "rate_rps" means "workload.arrivals.rate_rps". */
static bool ends_with_key(const char *path, const char *key)
{
    const size_t n_path = strlen(path), n_key = strlen(key);
    return n_path > n_key && path[n_path - n_key - 1] == '.' &&
           strcmp(path + n_path - n_key, key) == 0;
}

static const char *meant(const struct key_names *names, const char *dotted)
{
    for (size_t i = 0; i < names->n; i++)
        if (ends_with_key(names->words[i], dotted))
            return names->words[i];
    return ifl_nearest(dotted, names->words, names->n);
}

/* "serving.admit.max_rpm" with the number that the misspelt key had. */
static const char *with_number(const char *near, const char *dotted, char numbered[MAX_KEY_CHARS])
{
    const struct number_in_key number = number_in(dotted);
    if (number.n_number == 0 || strncmp(near, dotted, number.n_list) != 0)
        return near;
    snprintf(numbered, MAX_KEY_CHARS, "%.*s%s", (int)(number.n_list + number.n_number), dotted,
             near + number.n_list);
    return numbered;
}

/* A key of a pool: one of its own, or one that the configuration has, too. */
static int check_pool_key(const char *inner, bool only_values, const struct node *node,
                          struct ifl_error *error)
{
    char first[MAX_KEY_CHARS];
    if (!*inner)
        return only_values ? tree_fail(node, error, "a pool is a map of keys, expected a key of it")
                           : 0;
    if (strcmp(inner, "count") == 0 || strcmp(inner, "role") == 0)
        return 0;
    if (key_is_of_pools(inner))
        return key_check(inner, only_values, node, error);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(inner, "."), inner);
    const char *near = ifl_nearest(first, of_pools, N_OF_POOLS);
    if (near)
        return tree_fail(node, error, "a pool has no key %.100s, did you mean %s?", first, near);
    return tree_fail(
        node, error,
        "a pool has no key %.100s, expected count, role, model, hardware, dtype, or a key "
        "of parallel, serving, deployment or cost",
        first);
}

int key_check(const char *dotted, bool only_values, const struct node *node,
              struct ifl_error *error)
{
    if (key_in_pool(dotted))
        return check_pool_key(key_in_pool(dotted), only_values, node, error);
    struct key_names names;
    int code = gather(&names, error);
    if (code < 0)
        return code;
    char plain[MAX_KEY_CHARS], numbered[MAX_KEY_CHARS], text[256];
    size_t i = 0;
    key_plain(dotted, plain);
    while (i < names.n && strcmp(names.words[i], plain) != 0)
        i++;
    const char *near = i < names.n ? NULL : meant(&names, plain);
    enum server server;
    const struct server_flag *flag = i < names.n ? NULL : server_flag_meant(dotted, &server);
    if (flag)
        code = tree_fail(node, error, "unknown key %.100s, %s here", dotted,
                         server_flag_describe(flag, server, text, sizeof text));
    else if (near)
        code = tree_fail(node, error, "unknown key %.100s, did you mean %s?", dotted,
                         with_number(near, dotted, numbered));
    else if (i == names.n)
        code = tree_fail(node, error, "unknown key %.100s, see `inflight list keys`", dotted);
    else if (only_values && i >= names.n_values)
        code = tree_fail(node, error, "%s is a map of keys, expected a key with a value", dotted);
    free_names(&names);
    return code;
}
