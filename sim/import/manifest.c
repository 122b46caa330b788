#include "import/manifest.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/tree.h"

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

struct container {
    const struct node *map;      /* or, of a command without a container, the list of its words */
    bool is_item;                /* of a list, as in Kubernetes */
    const struct node *replicas; /* how many there are of it; NULL: one */
    struct variables *given;     /* those in front of the manifest */
    struct variables *own;       /* the container's */
};

static const struct node *member(const struct node *map, const char *key)
{
    return settings_member(map, key);
}

/* Kubernetes, not Compose. */
static bool is_pod(const struct container *c)
{
    return c->is_item || member(c->map, "args");
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

/* ---- words ---- */

static void put_quoted(const char *word, FILE *out)
{
    expand_quote(word, out);
    fputc(' ', out);
}

/* The text with values of variables: those in front of the manifest, and the container's. Compose
 * knows only the former, and would leave the latter to a shell; a text without the former means the
 * same value. The caller owns it. */
static char *with_values(const struct container *c, const char *text)
{
    const struct expansion e = {.variables = c->given, .others = c->own};
    return settings_value(text, &e, is_pod(c) ? c->own : NULL);
}

/* The words of one text, as Compose splits them: a line's end is a blank. */
static int put_text(const struct container *c, const struct node *text, FILE *out,
                    struct ifl_error *error)
{
    struct words words;
    struct ifl_error wrong = {.code = IFL_E_NOMEM};
    char *value = with_values(c, text->text);
    const int split = value ? words_split(value, &words, &wrong) : IFL_E_NOMEM;
    free(value);
    if (split < 0)
        return wrong.code == IFL_E_INPUT ? tree_fail(text, error, "a quote is not closed")
                                         : ifl_fail_nomem(error);
    for (size_t i = 0; i < words.n; i++)
        if (!words.is_break[i])
            put_quoted(words.of[i], out);
    words_free(&words);
    return 0;
}

/* An item is one word, whatever it has in it: servers refuse "--flag value" as one. */
static int put_item(const struct container *c, const struct node *item, FILE *out,
                    struct ifl_error *error)
{
    char found[128];
    if (item->kind != NODE_SCALAR)
        return tree_fail(item, error, "an item of a command is %s, expected text in quotes",
                         tree_describe(item, found));
    const size_t n_chars = strcspn(item->text, "= \t\n");
    if (item->text[0] == '-' && item->text[n_chars] && item->text[n_chars] != '=')
        return tree_fail(item, error,
                         "%.*s and what follows are one word, expected a flag and its value as two "
                         "items, or with = between them",
                         (int)(n_chars < 100 ? n_chars : 100), item->text);
    char *value = with_values(c, item->text);
    put_quoted(value ? value : "", out);
    free(value);
    return value ? 0 : ifl_fail_nomem(error);
}

static int put_words(const struct container *c, const struct node *words, FILE *out,
                     struct ifl_error *error)
{
    int code = 0;
    if (words && words->kind == NODE_MAP)
        return tree_fail(words, error, "a command is a map, expected words");
    if (words && words->kind == NODE_SCALAR)
        return put_text(c, words, out, error);
    for (size_t i = 0; words && i < words->n && code == 0; i++)
        code = put_item(c, words->of[i], out, error);
    return code;
}

/* ---- the command of a container ---- */

/* The image's own program, where the container does not replace it: `command` does in Kubernetes,
 * `entrypoint` in Compose. lmsysorg/sglang has none, so that flags alone are meant for a server. */
static const char *image_program(const struct container *c, const char *own)
{
    const char *image = tree_text(member(c->map, "image"));
    if (!image || !*own || member(c->map, is_pod(c) ? "command" : "entrypoint"))
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
    int code = c->map->kind == NODE_LIST ? put_words(c, c->map, out, error) : 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && code == 0; i++)
        code = put_words(c, member(c->map, keys[i]), out, error);
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
    char *tag = image ? with_values(c, image) : NULL;
    if (tag)
        put_quoted(tag, out);
    fprintf(out, "%s%s", program, own);
    free(tag);
    return fclose(out) == 0 && (tag || !image) ? 0 : ifl_fail_nomem(error);
}

/* *command is NULL if the container starts no server. */
static int container_command(const struct container *c, char **command, struct ifl_error *error)
{
    char *own = NULL;
    *command = NULL;
    int code = settings_read(c->map, c->given, is_pod(c), c->own, error);
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
    struct container found;   /* map NULL: none */
    struct variables given;   /* in front of the manifest */
    char *command;            /* of it */
    const struct node *first; /* container, whatever it starts; NULL: there is none */
    const struct node *node;  /* container of a further node of the server; NULL: there is none */
    struct ifl_error *error;
};

static int take_command(struct search *search, const struct container *c, char *command)
{
    int code = 0;
    if (command && search->command && start_is_further(command)) {
        search->node = c->map;
        free(command);
        return 0;
    }
    if (command && search->command)
        code = tree_fail(c->map, search->error,
                         "a second container starts a server, the first on line %d: expected one",
                         search->found.map->line);
    if (code < 0 || !command) {
        free(command);
        return code;
    }
    search->found = *c;
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
    return code < 0 ? code : take_command(search, &c, command);
}

/* A part of a file that is used elsewhere in it. */
static bool is_template(const struct node *node)
{
    return node->key && (strncmp(node->key, "x-", 2) == 0 || strcmp(node->key, "<<") == 0);
}

/* What a container has in it, such as a probe of its health, is no server. */
static int walk(struct search *search, const struct container *at)
{
    const struct node *node = at->map, *replicas = member(node, "replicas");
    int code = 0;
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
        if (inner.map->kind != NODE_SCALAR && !is_template(inner.map))
            code = walk(search, &inner);
    }
    return code;
}

static int fail_without(const struct search *search, struct ifl_error *error)
{
    if (!search->first)
        return ifl_fail(error, IFL_E_INPUT,
                        "the command line: this YAML has no container with a command or args, "
                        "expected one that starts a server");
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

static int fail_template(const char *text, struct ifl_error *error)
{
    const char *mark = strstr(text, "{{");
    int line = 1;
    for (const char *at = text; at < mark; at++)
        line += *at == '\n';
    return ifl_fail_at(error, "the command line", line, 0,
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
    if (!search->node)
        return 0;
    snprintf(what, sizeof what, "container on line %d", search->node->line);
    return facts_find(facts, FOUND_HARMLESS, here, what, NULL, "the same server on a further node",
                      search->error);
}

static int read_roots(const char *text, struct search *search, struct facts *facts)
{
    struct node *roots;
    if (tree_parse_all(text, strlen(text), "the command line", &roots, search->error) < 0)
        return search->error->code;
    int code = 0;
    for (size_t i = 0; i < roots->n && code == 0; i++)
        code = walk(search, &(struct container){.map = roots->of[i]});
    if (code == 0)
        code = search->found.map ? find_keys(&search->found, facts, search->error)
                                 : fail_without(search, search->error);
    if (code == 0)
        code = find_node(search, facts);
    tree_free(roots);
    return code;
}

int manifest_read(const char *text, char **command, struct facts *facts, struct ifl_error *error)
{
    struct search search = {.error = error};
    const size_t n_settings = shell_settings(text);
    *command = NULL;
    if (!is_manifest(text + n_settings))
        return begins_with_template(text) ? fail_template(text, error) : 0;
    char *yaml = strdup(text);
    int code = yaml ? take_settings(yaml, n_settings, &search.given, error) : ifl_fail_nomem(error);
    if (code == 0)
        code = read_roots(yaml, &search, facts);
    if (code != IFL_E_NOMEM && yaml && has_template(yaml, &search))
        code = fail_template(yaml, error);
    variables_free(&search.given);
    free(yaml);
    if (code < 0)
        free(search.command);
    *command = code < 0 ? NULL : search.command;
    return code;
}
