#include "import/manifest.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "import/flag_words.h"
#include "import/manifest_parts.h"
#include "import/recipe.h"
#include "import/settings.h"
#include "import/shell.h"
#include "import/start.h"

static const struct place here = {NULL, 0};

/* ---- what a text is ---- */

/* Behind comments and the marks of documents, a manifest begins with an item, with a key, or, as
 * JSON, with a list or an object. No command of a shell does. */
#define TEXT "(\"[^\"\n]*\"|'[^'\n]*'|[A-Za-z0-9_./-]+)"
#define GAP "[ \t\r\n]*"
static const char first_line[] = "^([ \t]*([#%][^\n]*|---[^\n]*)?\r?\n)*[ \t]*"
                                 "(-[ \t\r\n]|" TEXT ":([ \t\r\n]|$)|"
                                 "\\[" GAP "(\\{|" TEXT GAP ",)|"
                                 "\\{" GAP "(\"[^\"\n]*\"|'[^'\n]*')" GAP ":)";

static bool is_manifest(const char *text)
{
    regex_t pattern;
    ifl_require(regcomp(&pattern, first_line, REG_EXTENDED | REG_NOSUB) == 0);
    const bool is = regexec(&pattern, text, 0, NULL, 0) == 0;
    regfree(&pattern);
    return is;
}

/* ---- containers ---- */

static const struct node *member(const struct node *map, const char *key)
{
    return settings_member(map, key);
}

static bool is_words(const struct node *node)
{
    return node && (node->kind == NODE_SCALAR ||
                    (node->kind == NODE_LIST && node->n > 0 && node->of[0]->kind == NODE_SCALAR));
}

static bool has_words(const struct node *map)
{
    return is_words(member(map, "entrypoint")) || is_words(member(map, "command")) ||
           is_words(member(map, "args"));
}

/* ---- the command of a container ---- */

/* The image's own program, where the container does not replace it: `command` does in Kubernetes,
 * `entrypoint` in Compose. lmsysorg/sglang has none, so that flags alone are meant for a server. */
static const char *image_program(const struct container *c, const char *own)
{
    const char *image = tree_text(member(c->map, "image"));
    if (!image || !*own || member(c->map, manifest_is_pod(c) ? "command" : "entrypoint"))
        return NULL;
    if (start_names(image, "vllm-openai"))
        return "";
    return start_names(image, "sglang") && strncmp(own, "'-", 2) == 0
               ? "python3 -m sglang.launch_server "
               : NULL;
}

/* The words of entrypoint, command and args; the caller owns them. */
static int own_words(const struct container *c, char **own, struct ifl_error *error)
{
    static const char *const keys[] = {"entrypoint", "command", "args"};
    size_t n_bytes;
    FILE *out = open_memstream(own, &n_bytes);
    if (!out)
        return ifl_fail_nomem(error);
    int code = c->map->kind == NODE_LIST ? manifest_put_words(c, c->map, out, error) : 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && code == 0; i++)
        code = manifest_put_words(c, member(c->map, keys[i]), out, error);
    return fclose(out) == 0 || code < 0 ? code : ifl_fail_nomem(error);
}

static int put_command(const struct container *c, const char *program, const char *own,
                       char **command, struct ifl_error *error)
{
    const char *image = tree_text(member(c->map, "image"));
    size_t n_bytes;
    FILE *out = open_memstream(command, &n_bytes);
    if (!out)
        return ifl_fail_nomem(error);
    settings_put(c->map, c->own, out);
    char *tag = image ? manifest_values(c, image) : NULL;
    if (tag)
        manifest_put_quoted(tag, out);
    fprintf(out, "%s%s", program, own);
    free(tag);
    return fclose(out) == 0 && (tag || !image) ? 0 : ifl_fail_nomem(error);
}

/* *command is NULL if the container starts no server. */
static int container_command(const struct container *c, char **command, struct ifl_error *error)
{
    char *own = NULL;
    *command = NULL;
    int code = settings_read(c->map, c->given, manifest_is_pod(c), c->own, error);
    code = code < 0 ? code : own_words(c, &own, error);
    const char *program = code < 0 ? NULL : start_is_in(own) ? "" : image_program(c, own);
    if (program)
        code = put_command(c, program, own, command, error);
    free(own);
    return code;
}

/* Of SkyPilot, dstack and the like: what a shell runs. */
static int script_command(const struct container *c, char **command, struct ifl_error *error)
{
    char *script = NULL;
    *command = NULL;
    int code = settings_read(c->map, c->given, true, c->own, error);
    code = code < 0 ? code : settings_script(c->map, c->own, &script, error);
    if (code == 0 && start_is_in(script))
        *command = script;
    else
        free(script);
    return code;
}

/* ---- the container of a manifest ---- */

struct search {
    struct container found;   /* map NULL: none, or no container */
    int line;                 /* of it; 0: none */
    const char *name;         /* of the text */
    const struct node *roots; /* its documents */
    struct facts *facts;
    struct variables given;   /* in front of the manifest */
    char *command;            /* of it */
    const struct node *first; /* container, whatever it starts; NULL: there is none */
    int node_line;            /* of a container of a further node of the server; 0: there is none */
    struct ifl_error *error;
};

static int take_command(void *of, const struct node *map, char *command)
{
    struct search *search = of;
    int code = 0;
    if (command && search->command && start_is_further(command)) {
        search->node_line = map->line;
        free(command);
        return 0;
    }
    if (command && search->command)
        code = tree_fail(map, search->error,
                         "a second container starts a server, the first on line %d: expected one",
                         search->line);
    if (code < 0 || !command) {
        free(command);
        return code;
    }
    search->line = map->line;
    search->command = command;
    return 0;
}

static int take_container(struct search *search, const struct container *at)
{
    struct variables own = {0};
    struct container c = *at;
    char *command;
    c.given = &search->given;
    c.own = &own;
    if (!search->first)
        search->first = c.map;
    int code = c.map->kind == NODE_MAP && !has_words(c.map)
                   ? script_command(&c, &command, search->error)
                   : container_command(&c, &command, search->error);
    variables_free(&own);
    const bool is_first = code == 0 && command && !search->command;
    if (code == 0)
        code = take_command(search, c.map, command);
    if (code == 0 && is_first)
        search->found = c;
    return code;
}

/* A part of a file that is used elsewhere in it. */
static bool is_template(const struct node *node)
{
    return node->key && (strncmp(node->key, "x-", 2) == 0 || strcmp(node->key, "<<") == 0);
}

static int walk(struct search *search, const struct container *at);

static int walk_all(struct search *search, const struct node *roots)
{
    int code = 0;
    for (size_t i = 0; i < roots->n && code == 0; i++)
        code = walk(search, &(struct container){.map = roots->of[i]});
    return code;
}

/* Ray's resource of Kubernetes has the configuration of its applications as text. */
static int walk_text(struct search *search, const struct node *text)
{
    char name[300];
    struct node *roots;
    snprintf(name, sizeof name, "%.255s, %s on line %d", search->name, text->key, text->line);
    if (tree_parse_all(text->text, strlen(text->text), name, &roots, search->error) < 0)
        return search->error->code;
    const int code = walk_all(search, roots);
    search->found.map = NULL; /* it goes with the tree */
    tree_free(roots);
    return code;
}

static int walk_recipe(struct search *search, const struct node *map, bool *is_one)
{
    const struct recipe recipe = {map,           search->roots, &search->given, search->facts,
                                  search->error, take_command,  search};
    return recipe_read(&recipe, is_one);
}

/* What a container has in it, such as a probe of its health, is no server. */
static int walk(struct search *search, const struct container *at)
{
    const struct node *node = at->map, *replicas = member(node, "replicas");
    bool is_one = false;
    int code = node->kind == NODE_MAP ? walk_recipe(search, node, &is_one) : 0;
    if (code < 0 || is_one || recipe_is_of_service(node, search->roots))
        return code;
    if (node->kind == NODE_LIST && is_words(node) && !node->key)
        return take_container(search, at);
    if (node->kind == NODE_MAP && has_words(node))
        return take_container(search, at);
    if (node->kind == NODE_MAP && settings_has_script(node))
        code = take_container(search, at);
    for (size_t i = 0; i < node->n && code == 0; i++) {
        const struct container inner = {.map = node->of[i],
                                        .is_item = node->kind == NODE_LIST,
                                        .replicas = replicas ? replicas : at->replicas};
        if (tree_text(inner.map) && inner.map->key && strcmp(inner.map->key, "serveConfigV2") == 0)
            code = walk_text(search, inner.map);
        else if (inner.map->kind != NODE_SCALAR && !is_template(inner.map))
            code = walk(search, &inner);
    }
    return code;
}

static int fail_without(const struct search *search, const struct node *roots,
                        struct ifl_error *error)
{
    if (!search->first && roots->n == 1 && flag_words_several(roots->of[0]))
        return ifl_fail(error, IFL_E_INPUT,
                        "%s: these flags may be those of several servers, expected a command that "
                        "names the file: --command \"vllm serve --config FILE\"",
                        search->name);
    if (!search->first)
        return ifl_fail(error, IFL_E_INPUT,
                        "%s: this YAML has no container with a command or args, "
                        "expected one that starts a server",
                        search->name);
    return tree_fail(search->first, error,
                     "no command and no args start a server that is known, expected vllm serve, "
                     "python -m vllm.entrypoints.openai.api_server, python -m "
                     "sglang.launch_server, trtllm-serve, or the image vllm/vllm-openai");
}

/* ---- the report ---- */

static int find_replicas(const struct container *c, struct facts *facts, struct ifl_error *error)
{
    const struct node *deploy = member(c->map, "deploy"), *service = member(c->map, "service");
    const struct node *deployed = settings_member(deploy ? deploy : service, "replicas");
    const char *n = tree_text(deployed ? deployed : c->replicas);
    char what[64];
    if (!n || strcmp(n, "1") == 0)
        return 0;
    snprintf(what, sizeof what, "replicas: %.40s", n);
    return facts_find(facts, FOUND_UNMODELLED, here, what, NULL,
                      "this is the configuration of one server: cluster.replicas says how many",
                      error);
}

/* Keys that neither start the server nor set a variable. */
static int find_keys(const struct container *c, struct facts *facts, struct ifl_error *error)
{
    static const char *const read[] = {"entrypoint",  "command", "args",     "image",
                                       "environment", "env",     "envs",     "setup",
                                       "run",         "<<",      "commands", NULL};
    static const char *const files[] = {"env_file", "envFrom", NULL};
    int code = find_replicas(c, facts, error);
    for (size_t i = 0; c->map->kind == NODE_MAP && i < c->map->n && code == 0; i++) {
        const char *key = c->map->of[i]->key;
        const bool hides = word_is_one_of(key, files);
        if (!word_is_one_of(key, read))
            code = facts_find(facts, hides ? FOUND_UNKNOWN : FOUND_HARMLESS, here, key, NULL,
                              hides ? "variables of another file" : NULL, error);
    }
    return code;
}

/* ---- templates ---- */

static bool begins_with_template(const char *text)
{
    return strncmp(text + strspn(text, " \t\r\n"), "{{", 2) == 0;
}

/* Marks of Go's templates that Helm's files have; {{.Name}} may be of Docker's. */
static bool is_template_text(const char *text)
{
    return strstr(text, "{{ .") || strstr(text, "{{-") || strstr(text, "{{ include") ||
           strstr(text, "{{ $") || begins_with_template(text);
}

/* A chat template is a value and has {% as well. */
static bool has_template(const char *text, const struct search *search)
{
    const char *command = search->command;
    return command ? strstr(command, "{{") && !strstr(command, "{%") : is_template_text(text);
}

static int fail_template(const char *text, const char *name, struct ifl_error *error)
{
    const char *mark = strstr(text, "{{");
    int line = 1;
    for (const char *at = text; at < mark; at++)
        line += *at == '\n';
    return ifl_fail_at(error, name, line, 0,
                       "{{ is of a template without its values, expected what `helm template` or "
                       "the like makes of it");
}

/* ---- the manifest ---- */

/* Variables in front of the manifest, as of its .env: read, and blank in the text. */
static int take_settings(char *text, size_t n, struct variables *given, struct ifl_error *error)
{
    char *settings = strndup(text, n), *dropped = NULL;
    if (!settings)
        return ifl_fail_nomem(error);
    const int code = n > 0 ? shell_expand(settings, given, &dropped, error) : 0;
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] == '\n' ? '\n' : ' ';
    free(settings);
    free(dropped);
    return code;
}

static int find_node(const struct search *search, struct facts *facts)
{
    char what[64];
    if (search->node_line == 0)
        return 0;
    snprintf(what, sizeof what, "container on line %d", search->node_line);
    return facts_find(facts, FOUND_HARMLESS, here, what, NULL, "the same server on a further node",
                      search->error);
}

/* Flags alone, as of vLLM's --config: if they can only be those of one server. */
static int take_flags(struct search *search, const struct node *roots)
{
    static const char *const programs[N_SERVERS] = {
        "vllm serve ", "python3 -m sglang.launch_server ", "trtllm-serve "};
    const struct node *map = roots->n == 1 ? roots->of[0] : NULL;
    enum server server;
    size_t n_bytes;
    char *command = NULL;
    if (!map || !flag_words_server(map, &server))
        return 0;
    FILE *out = open_memstream(&command, &n_bytes);
    if (!out)
        return ifl_fail_nomem(search->error);
    fputs(programs[server], out);
    int code = flag_words_put(map, server, out, search->error);
    if (fclose(out) != 0 && code == 0)
        code = ifl_fail_nomem(search->error);
    if (code == 0)
        return take_command(search, map, command);
    free(command);
    return code;
}

static int read_tree(struct search *search, const struct node *roots)
{
    search->roots = roots;
    int code = walk_all(search, roots);
    if (code == 0 && !search->command && !search->first)
        code = take_flags(search, roots);
    if (code == 0 && !search->command)
        code = fail_without(search, roots, search->error);
    if (code == 0 && search->found.map)
        code = find_keys(&search->found, search->facts, search->error);
    return code == 0 ? find_node(search, search->facts) : code;
}

static int read_roots(const char *text, struct search *search)
{
    struct node *roots;
    if (tree_parse_all(text, strlen(text), search->name, &roots, search->error) < 0)
        return search->error->code;
    const int code = read_tree(search, roots);
    tree_free(roots);
    return code;
}

int manifest_read(const char *text, const char *name, char **command, struct facts *facts,
                  struct ifl_error *error)
{
    struct search search = {
        .error = error, .facts = facts, .name = name ? name : "the command line"};
    const size_t n_settings = shell_settings(text);
    *command = NULL;
    if (!is_manifest(text + n_settings))
        return begins_with_template(text) ? fail_template(text, search.name, error) : 0;
    char *yaml = strdup(text);
    int code = yaml ? take_settings(yaml, n_settings, &search.given, error) : ifl_fail_nomem(error);
    if (code == 0)
        code = read_roots(yaml, &search);
    if (code != IFL_E_NOMEM && yaml && has_template(yaml, &search))
        code = fail_template(yaml, search.name, error);
    variables_free(&search.given);
    free(yaml);
    if (code < 0)
        free(search.command);
    *command = code < 0 ? NULL : search.command;
    return code;
}
