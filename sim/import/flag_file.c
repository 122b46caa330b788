/* vllm/utils/argparse_utils.py (_pull_args_from_config), sglang/srt/server_args_config_parser.py:
 * the flags of the file stand in front of those of the command line, so that the latter count.
 * tensorrt_llm/commands/serve.py: the settings of the file overwrite those of the command line. */
#include "import/flag_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tree.h"

#include "import/flag_words.h"

static const struct place here = {NULL, 0};

bool flag_file_is(const struct server_flag *flag)
{
    return strcmp(flag->name, "config") == 0 || strcmp(flag->name, "extra_llm_api_options") == 0;
}

bool flag_file_is_last(enum server server)
{
    return server == SERVER_TRTLLM;
}

/* ---- the name ---- */

/* The file behind the flag at *i; NULL: the word is another one. */
static const char *named_at(const struct flag_file_at *at, size_t *i, enum server server)
{
    const char *word = at->words->of[*i], *equals = strchr(word, '=');
    const struct server_flag *flag = NULL;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - word : 63), word);
    if (strncmp(word, "--", 2) == 0)
        flag = server_flag_find(server, name, server == SERVER_TRTLLM);
    if (!flag || !flag_file_is(flag))
        return NULL;
    if (equals)
        return equals + 1;
    return *i + 1 < at->end ? at->words->of[++*i] : NULL;
}

/* ---- the text ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The delimiter of a here-document that the line writes to the file, "EOF" of cat >FILE <<'EOF'; 0
 * characters: the line has none. */
static size_t delimiter(const char *line, size_t n_line, const char *file, const char **begin)
{
    const char *mark = strstr(line, "<<"), *name = strstr(line, file);
    const char *end = line + n_line;
    if (!*file || !mark || mark >= end || mark[2] == '<' || !name || name >= end)
        return 0;
    *begin = mark + 2 + strspn(mark + 2, "- \t'\"\\");
    return *begin < end ? strcspn(*begin, " \t\r\n'\">;&|") : 0;
}

/* The text up to the line that is the delimiter. */
static size_t document_chars(const char *text, const char *mark, size_t n_mark)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const char *word = line + strspn(line, "\t");
        if (strncmp(word, mark, n_mark) == 0 && strchr("\r\n", word[n_mark]))
            return (size_t)(line - text);
        if (!line[strcspn(line, "\n")])
            break;
    }
    return strlen(text);
}

/* What the script writes to the file; NULL: nothing. The caller frees it. */
static char *written(const char *script, const char *file)
{
    for (const char *line = script; line && *line;) {
        const size_t n_line = strcspn(line, "\n");
        const char *mark, *text = line + n_line + (line[n_line] == '\n');
        const size_t n_mark = delimiter(line, n_line, file, &mark);
        if (n_mark > 0)
            return strndup(text, document_chars(text, mark, n_mark));
        line = text;
    }
    return NULL;
}

/* The data of a ConfigMap of Kubernetes under the file's name; NULL: none has it. */
static const struct node *data_of(const struct node *roots, const char *name)
{
    for (size_t i = 0; i < roots->n; i++) {
        const char *kind = tree_text(tree_child(roots->of[i], "kind"));
        const struct node *data = tree_child(roots->of[i], "data");
        const struct node *text = data ? tree_child(data, name) : NULL;
        if (kind && strcmp(kind, "ConfigMap") == 0 && tree_text(text))
            return text;
    }
    return NULL;
}

/* What a ConfigMap of the manifest has as the file. */
static char *configured(const char *manifest, const char *file)
{
    struct ifl_error wrong;
    struct node *roots;
    if (tree_parse_all(manifest, strlen(manifest), "", &roots, &wrong) < 0)
        return NULL;
    const struct node *text = data_of(roots, base_name(file));
    char *copy = text ? strdup(text->text) : NULL;
    tree_free(roots);
    return copy;
}

/* The file itself, or one of its name beside the command line: a container has it elsewhere. */
static bool find(const char *folder, const char *file, char path[1024])
{
    const bool is_absolute = *file == '/';
    snprintf(path, 1024, "%.500s%s%.500s", is_absolute ? "" : folder, is_absolute ? "" : "/", file);
    if (access(path, R_OK) == 0)
        return true;
    snprintf(path, 1024, "%.500s/%.500s", folder, base_name(file));
    return access(path, R_OK) == 0;
}

/* *root is NULL if there is no such file. `source` is where it was read from. */
static int load(const struct flag_file_at *at, const char *file, char source[1024],
                struct node **root, struct ifl_error *error)
{
    char *text = at->script ? written(at->script, file) : NULL;
    const bool is_written = text;
    int code = 0;
    *root = NULL;
    if (!text && at->manifest)
        text = configured(at->manifest, file);
    snprintf(source, 1024, "%.500s of %s", is_written ? file : base_name(file),
             is_written ? "the command line" : "a ConfigMap");
    if (text)
        code = tree_parse(text, strlen(text), source, root, error);
    else if (at->folder && *file && find(at->folder, file, source))
        code = tree_load(source, root, error);
    free(text);
    if (code == 0 && *root && (*root)->kind != NODE_MAP) {
        code = tree_fail(*root, error, "expected flags with their values, one a line");
        tree_free(*root);
        *root = NULL;
    }
    return code;
}

/* ---- the flags ---- */

static bool is_of_model(enum server server, const char *word, bool abbreviated)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const struct server_flag *flag = server_flag_find(server, name, abbreviated);
    return flag && flag->key && strcmp(flag->key, "model") == 0;
}

static bool command_has_model(const struct flag_file_at *at, enum server server)
{
    const char *first = at->at < at->end ? at->words->of[at->at] : "-";
    bool has = *first != '-' && server != SERVER_SGLANG;
    for (size_t i = at->at; i < at->end && !has; i++)
        has = at->words->of[i][0] == '-' && is_of_model(server, at->words->of[i], true);
    return has;
}

/* A model of the file that the command line names as well. */
static int drop_model(const struct flag_file_at *at, struct node *root, struct facts *facts,
                      struct ifl_error *error)
{
    const bool has = command_has_model(at, facts->server);
    char what[200];
    int code = 0;
    for (size_t i = root->n; has && i-- > 0 && code == 0;) {
        const struct node *value = root->of[i];
        if (!is_of_model(facts->server, value->key, false))
            continue;
        snprintf(what, sizeof what, "--%.40s=%.120s", value->key,
                 tree_text(value) ? tree_text(value) : "");
        code = facts_find(facts, FOUND_HARMLESS, here, what, NULL,
                          "the command line names the model", error);
        tree_drop(root, value->key);
    }
    return code;
}

static int find_file(const char *what, const char *source, bool is_read, struct facts *facts,
                     struct ifl_error *error)
{
    char text[1500];
    const bool is_last = flag_file_is_last(facts->server);
    snprintf(text, sizeof text, "%.400s%s%.1000s", what, is_read ? " = " : "",
             is_read ? source : "");
    if (!is_read)
        return facts_find(facts, FOUND_UNREAD, here, text, NULL,
                          "this file is not at hand, so the flags in it are missing here", error);
    return facts_find(facts, FOUND_HARMLESS, here, text, NULL,
                      is_last ? "the settings of this file count before those of the command line"
                              : "the flags of the command line count before those of this file",
                      error);
}

static int put_flags(const struct node *root, enum server server, char **flags,
                     struct ifl_error *error)
{
    size_t n_bytes;
    FILE *out = open_memstream(flags, &n_bytes);
    if (!out)
        return ifl_fail_nomem(error);
    int code = flag_words_put(root, server, out, error);
    if (fclose(out) != 0 && code == 0)
        code = ifl_fail_nomem(error);
    if (code < 0) {
        free(*flags);
        *flags = NULL;
    }
    return code;
}

static int read_file(const struct flag_file_at *at, const char *what, const char *file,
                     char **flags, struct facts *facts, struct ifl_error *error)
{
    char source[1024];
    struct node *root;
    int code = load(at, file, source, &root, error);
    if (code < 0)
        return code;
    code = find_file(what, source, root != NULL, facts, error);
    if (root && code == 0)
        code = drop_model(at, root, facts, error);
    if (root && code == 0)
        code = put_flags(root, facts->server, flags, error);
    tree_free(root);
    return code;
}

/* vLLM and SGLang look for the word --config alone. */
static int find_unread(const char *word, struct facts *facts, struct ifl_error *error)
{
    char what[200];
    snprintf(what, sizeof what, "%.190s", word);
    return facts_find(facts, FOUND_UNREAD, here, what, NULL,
                      "the server reads this file only if a blank stands in place of =", error);
}

int flag_file_read(const struct flag_file_at *at, char **flags, struct facts *facts,
                   struct ifl_error *error)
{
    const bool needs_blank = facts->server != SERVER_TRTLLM;
    const char *last = NULL;
    char what[300];
    int code = 0;
    *flags = NULL;
    for (size_t i = at->at; i < at->end && code == 0; i++) {
        const char *word = at->words->of[i], *file = named_at(at, &i, facts->server);
        const bool has_sign = strchr(word, '=');
        if (file && needs_blank && has_sign)
            code = find_unread(word, facts, error);
        if (!file || (needs_blank && has_sign))
            continue;
        if (last)
            return ifl_fail(error, IFL_E_INPUT,
                            "the command line: a second file of flags (%.200s), the first is "
                            "%.200s: expected one",
                            file, last);
        snprintf(what, sizeof what, "%.60s%s%.200s", word, has_sign ? "" : " ",
                 has_sign ? "" : file);
        last = file;
    }
    return code == 0 && last ? read_file(at, what, last, flags, facts, error) : code;
}
