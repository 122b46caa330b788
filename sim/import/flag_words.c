#include "import/flag_words.h"

#include <stdlib.h>
#include <string.h>

#include "import/expand.h"
#include "import/settings.h"
#include "import/words.h"

/* https://yaml.org/type/bool.html without its single letters, as PyYAML's safe_load. */
enum yaml_truth yaml_truth_of(const struct node *node)
{
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes",
                                      "YES",  "on",   "On",   "ON",  NULL};
    static const char *const no[] = {"false", "False", "FALSE", "no",  "No",
                                     "NO",    "off",   "Off",   "OFF", NULL};
    if (node->kind != NODE_SCALAR || node->quoted)
        return YAML_OTHER;
    return word_is_one_of(node->text, yes)  ? YAML_TRUE
           : word_is_one_of(node->text, no) ? YAML_FALSE
                                            : YAML_OTHER;
}

static json_t *scalar_json(const struct node *node)
{
    const enum yaml_truth truth = yaml_truth_of(node);
    json_t *number = NULL;
    if (tree_is_null(node))
        return json_null();
    if (truth != YAML_OTHER)
        return json_boolean(truth == YAML_TRUE);
    if (!node->quoted)
        number = json_loads(node->text, JSON_DECODE_ANY, NULL);
    if (number && json_is_number(number))
        return number;
    json_decref(number);
    return json_string(node->text);
}

json_t *node_json(const struct node *node)
{
    json_t *json = node->kind == NODE_SCALAR ? scalar_json(node)
                   : node->kind == NODE_MAP  ? json_object()
                                             : json_array();
    for (size_t i = 0; json && i < node->n; i++) {
        json_t *inner = node_json(node->of[i]);
        const int failed = node->kind == NODE_MAP
                               ? json_object_set_new(json, node->of[i]->key, inner)
                               : json_array_append_new(json, inner);
        if (failed) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

/* ---- one flag ---- */

static int put_scalar(const char *key, const char *value, FILE *out, struct ifl_error *error)
{
    const size_t n_bytes = strlen(key) + strlen(value) + 4;
    char *word = malloc(n_bytes);
    if (!word)
        return ifl_fail_nomem(error);
    snprintf(word, n_bytes, "--%s=%s", key, value);
    expand_quote(word, out);
    fputc(' ', out);
    free(word);
    return 0;
}

static int put_json(const char *key, const struct node *value, FILE *out, struct ifl_error *error)
{
    json_t *json = node_json(value);
    char *text = json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;
    const int code = text ? put_scalar(key, text, out, error) : ifl_fail_nomem(error);
    free(text);
    json_decref(json);
    return code;
}

static bool is_plain_list(const struct node *value)
{
    bool is = value->kind == NODE_LIST && value->n > 0;
    for (size_t i = 0; is && i < value->n; i++)
        is = value->of[i]->kind == NODE_SCALAR;
    return is;
}

int flag_words_one(const char *key, const struct node *value, enum server server, FILE *out,
                   struct ifl_error *error)
{
    const struct server_flag *flag = server_flag_find(server, key, false);
    const enum yaml_truth truth = yaml_truth_of(value);
    const bool is_list = is_plain_list(value);
    if (tree_is_null(value))
        return put_scalar(key, "None", out, error);
    if (value->kind == NODE_SCALAR)
        return put_scalar(key,
                          truth == YAML_TRUE    ? "True"
                          : truth == YAML_FALSE ? "False"
                                                : value->text,
                          out, error);
    if (!is_list || !(value->n == 1 || (flag && flag->takes == TAKES_WORDS)) ||
        (flag && flag->takes == TAKES_JSON))
        return put_json(key, value, out, error);
    fprintf(out, "'--%s' ", key);
    for (size_t i = 0; i < value->n; i++) {
        expand_quote(value->of[i]->text, out);
        fputc(' ', out);
    }
    return 0;
}

/* ---- all flags of a map ---- */

/* Names of members that the flag of TensorRT-LLM has another name for (llmapi/llm_args.py). */
static const char *member_name(const char *key)
{
    static const char *const renamed[][2] = {{"dtype", "kv_cache_dtype"},
                                             {"max_tokens", "max_tokens_in_paged_kv_cache"},
                                             {"max_attention_window", "max_attention_window_size"}};
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(key, renamed[i][0]) == 0)
            return renamed[i][1];
    return key;
}

static bool is_object(const char *key, enum server server)
{
    static const char *const names[] = {"kv_cache_config", "scheduler_config", NULL};
    return server == SERVER_TRTLLM && word_is_one_of(key, names);
}

static bool has_members(const struct node *value, enum server server)
{
    return value->kind == NODE_MAP && is_object(value->key, server);
}

static int put_members(const struct node *object, enum server server, FILE *out,
                       struct ifl_error *error)
{
    char path[160];
    int code = 0;
    for (size_t i = 0; i < object->n && code == 0; i++) {
        const char *name = member_name(object->of[i]->key);
        const bool is_known = server_flag_find(server, name, false);
        snprintf(path, sizeof path, "%s.%.100s", object->key, name);
        code = flag_words_one(is_known ? name : path, object->of[i], server, out, error);
    }
    return code;
}

/* A key with a blank or an equals sign in it would be read as something else. */
static int check_key(const struct node *value, struct ifl_error *error)
{
    static const char others[] = " \t\r\n='\"";
    if (value->key[0] && value->key[0] != '-' && !strpbrk(value->key, others))
        return 0;
    return tree_fail(value, error, "%.100s is a key, expected the name of a flag without dashes",
                     value->key);
}

struct put {
    enum server server;
    FILE *out;
    struct ifl_error *error;
};

static int put_value(void *of, const struct node *value)
{
    const struct put *put = of;
    if (check_key(value, put->error) < 0)
        return put->error->code;
    return has_members(value, put->server)
               ? put_members(value, put->server, put->out, put->error)
               : flag_words_one(value->key, value, put->server, put->out, put->error);
}

int flag_words_put(const struct node *map, enum server server, FILE *out, struct ifl_error *error)
{
    struct put put = {server, out, error};
    return settings_each(map, put_value, &put, error);
}

/* ---- the server ---- */

static bool knows(enum server server, const char *key)
{
    const struct server_flag *flag = server_flag_find(server, key, false);
    return (flag && flag->sense != FLAG_ELSEWHERE) || is_object(key, server);
}

bool flag_words_several(const struct node *map)
{
    size_t n_known = 0;
    for (size_t i = 0; map->kind == NODE_MAP && i < map->n; i++) {
        size_t n_servers = 0;
        for (int server = 0; server < N_SERVERS; server++)
            n_servers += knows((enum server)server, map->of[i]->key);
        n_known += n_servers > 1;
    }
    return map->kind == NODE_MAP && n_known > 0 && 2 * n_known > map->n;
}

/* True if `a` knows each key that `b` knows, and one that `b` does not. */
static bool knows_more(const struct node *map, enum server a, enum server b)
{
    bool more = false;
    for (size_t i = 0; i < map->n; i++) {
        const bool by_a = knows(a, map->of[i]->key), by_b = knows(b, map->of[i]->key);
        if (by_b && !by_a)
            return false;
        more |= by_a && !by_b;
    }
    return more;
}

bool flag_words_server(const struct node *map, enum server *server)
{
    for (int a = 0; map->kind == NODE_MAP && a < N_SERVERS; a++) {
        bool is = true;
        for (int b = 0; b < N_SERVERS && is; b++)
            is = a == b || knows_more(map, (enum server)a, (enum server)b);
        *server = (enum server)a;
        if (is)
            return true;
    }
    return false;
}
