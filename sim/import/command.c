#include "import/command.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/nearest.h"

#include "import/environment.h"
#include "import/flag_file.h"
#include "import/manifest.h"
#include "import/objects.h"
#include "import/secrets.h"
#include "import/shell.h"
#include "import/start.h"
#include "import/unit.h"

static const struct place here = {NULL, 0};

enum { MAX_FLAGS = 1024 };

/* ---- the release ---- */

/* "vllm==0.9.1" of `pip install`. */
static const char *pinned(const char *word)
{
    static const char *const packages[] = {"vllm", "sglang", "tensorrt-llm", "tensorrt_llm"};
    const char *version = strstr(word, "==");
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        const size_t n = strlen(packages[i]);
        if (version && strncmp(word, packages[i], n) == 0 && strchr("=[", word[n]) &&
            version[2] >= '0' && version[2] <= '9')
            return version + 2;
    }
    return NULL;
}

static int read_version(const char *word, const char *version, struct facts *facts,
                        struct ifl_error *error)
{
    const int code = facts_say(facts, "version", version, here, false, error);
    return code < 0 ? code
                    : facts_find(facts, FOUND_MAPS, here, word, "serving.preset", NULL, error);
}

/* The version in an image's tag, as in vllm/vllm-openai:v0.9.1. Behind a dash the tag goes on with
 * what the image is built for (-cu130-ubuntu2404), which a log does not repeat. */
static const char *tag_of(const char *word, char version[64])
{
    const char *tag = strrchr(word, ':');
    if (!tag || strchr(word, '@') || strchr(tag, '/') || !strpbrk(tag, "0123456789"))
        return NULL;
    tag += 1 + (tag[1] == 'v');
    snprintf(version, 64, "%.*s", (int)strcspn(tag, "-"), tag);
    return *tag < '0' || *tag > '9' ? NULL : version;
}

static int read_tag(const char *word, struct facts *facts, struct ifl_error *error)
{
    char version[64];
    const char *tag = tag_of(word, version);
    return tag ? read_version(word, tag, facts, error) : 0;
}

/* ---- in front of the program ---- */

/* One word in front of the program, or a flag of a secret with its value. */
static int read_front(const struct words *words, size_t *i, size_t n, struct facts *facts,
                      struct ifl_error *error)
{
    char *word = words->of[*i], written[512], version[64];
    char *variable = word + (strncmp(word, "--env=", 6) == 0 ? 6 : strncmp(word, "-e", 2) ? 0 : 2);
    const bool hides = word[0] == '-' && !strchr(word, '=') && is_secret_name(word, strlen(word));
    if (environment_is_variable(variable))
        return environment_read(variable, facts, error);
    if (strstr(word, "vllm-openai:"))
        return read_tag(word, facts, error);
    if (pinned(word))
        return read_version(word, pinned(word), facts, error);
    if (strstr(word, "/sglang:") && tag_of(word, version) && /* SGLang's preset is of no release */
        facts_say(facts, "version", version, here, false, error) < 0)
        return error->code;
    snprintf(written, sizeof written, "%.200s%s%.200s", word, hides ? " " : "",
             hides && *i + 1 < n ? words->of[++*i] : "");
    return facts_find(facts, FOUND_HARMLESS, here, written, NULL, NULL, error);
}

/* A command that starts the same server on a further node: its flags are said once. */
static int skip_node(const struct words *words, size_t *i, size_t limit, struct facts *facts,
                     struct ifl_error *error)
{
    const bool begins = *i == 0 || words->is_break[*i - 1];
    const size_t end = begins ? start_skip_node(words, *i, limit) : *i;
    if (end == *i)
        return 0;
    char what[64];
    snprintf(what, sizeof what, "%zu words of a command", end - *i);
    *i = end;
    return facts_find(facts, FOUND_HARMLESS, here, what, NULL, "the same server on a further node",
                      error);
}

/* Words in front of the program: variables count, the rest belongs to a shell or a container. */
static int read_before(const struct words *words, size_t n, struct facts *facts,
                       struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < n && code == 0; i++) {
        code = skip_node(words, &i, n, facts, error);
        if (code == 0 && i < n && !words->is_break[i])
            code = read_front(words, &i, n, facts, error);
    }
    return code;
}

/* ---- flags ---- */

struct cursor {
    const struct words *words;
    size_t at, n;
    struct facts *facts;
    struct ifl_error *error;
};

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

static int check_json(const char *name, const char *value, struct ifl_error *error)
{
    json_error_t where;
    json_t *json = json_loads(value, JSON_DECODE_ANY, &where);
    if (!json)
        return ifl_fail(error, IFL_E_INPUT, "the command line: %s is not JSON: %s", name,
                        where.text);
    json_decref(json);
    return 0;
}

/* "--enable-chunked-prefill False" is one flag. */
static bool is_truth(const char *word)
{
    return strcmp(word, "True") == 0 || strcmp(word, "False") == 0 || strcmp(word, "true") == 0 ||
           strcmp(word, "false") == 0;
}

/* The value of a flag: behind its equals sign, or the words behind it. */
static int take_value(struct cursor *c, const struct server_flag *flag, const char *inner,
                      const char *word, char *value, size_t n_bytes)
{
    snprintf(value, n_bytes, "%s", inner ? inner : "");
    if (flag->takes == TAKES_NOTHING && c->at < c->n && is_truth(c->words->of[c->at]))
        snprintf(value, n_bytes, "%s", c->words->of[c->at++]);
    if ((inner && (*inner || !flag->key)) || flag->takes == TAKES_NOTHING)
        return 0;
    while (!inner && c->at < c->n && !is_flag(c->words->of[c->at])) {
        const size_t used = strlen(value);
        snprintf(value + used, n_bytes - used, "%s%s", used ? " " : "", c->words->of[c->at++]);
        if (flag->takes != TAKES_WORDS)
            break;
    }
    if (*value)
        return 0;
    return ifl_fail(c->error, IFL_E_INPUT, "the command line: %s expects a value", word);
}

/* The flag that a misspelt one is nearest to, NULL: none. */
static const char *nearest_flag(enum server server, const char *word, size_t n_chars)
{
    const struct server_flags *flags = server_flags_of(server);
    const char *names[MAX_FLAGS];
    char text[64];
    size_t n = 0;
    snprintf(text, sizeof text, "%.*s", (int)n_chars, word);
    for (char *c = text; *c; c++)
        *c = *c == '-' ? '_' : *c;
    for (size_t i = 0; i < flags->n && n < MAX_FLAGS; i++)
        if (flags->of[i].sense != FLAG_ELSEWHERE)
            names[n++] = flags->of[i].name;
    return ifl_nearest(text + strspn(text, "_"), names, n);
}

static int read_unknown(struct cursor *c, const char *word)
{
    char written[512], name[64] = "";
    const bool has_value = c->at < c->n && !is_flag(c->words->of[c->at]) && !strchr(word, '=');
    const char *value = has_value ? c->words->of[c->at++] : NULL;
    const char *near = nearest_flag(c->facts->server, word, strcspn(word, "="));
    const bool hides = near && is_secret_name(near, strlen(near));
    snprintf(written, sizeof written, "%.*s%s%.300s%s%s%s",
             (int)(hides ? strcspn(word, "=") : strlen(word)), word, value && !hides ? " " : "",
             value && !hides ? value : "", near ? ": did you mean " : "",
             near ? server_flag_spell(near, c->facts->server, name) : "", near ? "?" : "");
    return facts_find(c->facts, FOUND_UNKNOWN, here, written, NULL, NULL, c->error);
}

/* True if the flag, or its opposite --no-..., is in the table. "-O3" is "-O 3", "-cc.mode" is of
 * "-cc". */
static const struct server_flag *find_flag(enum server server, const char *name, bool *negated)
{
    char base[64];
    snprintf(base, sizeof base, "%.*s", (int)strcspn(name, "."), name);
    const struct server_flag *flag = server_flag_find(server, base, name[1] == '-');
    *negated = !flag && strncmp(base, "--no-", 5) == 0;
    if (*negated)
        flag = server_flag_find(server, base + 5, true);
    if (*negated && flag && flag->takes != TAKES_NOTHING)
        flag = NULL;
    if (!flag && name[0] == '-' && name[1] == 'O')
        flag = server_flag_find(server, "O", false);
    return flag;
}

static int read_flag(struct cursor *c)
{
    char name[128], value[4096], written[4600];
    const char *word = c->words->of[c->at++], *equals = strchr(word, '=');
    bool negated;
    snprintf(name, sizeof name, "%.*s", (int)(equals ? (size_t)(equals - word) : strlen(word)),
             word);
    const struct server_flag *flag = find_flag(c->facts->server, name, &negated);
    if (!flag)
        return read_unknown(c, word);
    if (negated && equals)
        return ifl_fail(c->error, IFL_E_INPUT, "the command line: %s takes no value", name);
    const char *inner = equals                                     ? equals + 1
                        : name[1] == 'O' && name[2]                ? name + 2
                        : flag->takes == TAKES_NOTHING && !negated ? "True"
                        : negated                                  ? "False"
                                                                   : NULL;
    if (take_value(c, flag, inner, name, value, sizeof value) < 0)
        return c->error->code;
    if (flag_file_is(flag) && !strchr(name, '.'))
        return 0; /* flag_file_read says what it is */
    if (flag->takes == TAKES_JSON && !strchr(name, '.') && value[0] == '{' &&
        check_json(name, value, c->error) < 0)
        return c->error->code;
    const bool bare = !equals && flag->takes == TAKES_NOTHING;
    snprintf(written, sizeof written, "%s%s%s", name, bare || negated ? "" : " ",
             bare || negated ? "" : value);
    if (flag->takes == TAKES_JSON && strchr(name, '.'))
        object_nest(strchr(name, '.') + 1, value, sizeof value);
    return facts_argument(c->facts, flag, value, written, here, false, c->error);
}

/* A word that is no flag's: the model, once. */
static int read_word(struct cursor *c)
{
    const char *word = c->words->of[c->at++], *name = facts_model_name(c->facts);
    if (strstr(word, "[@]}") || strstr(word, "[*]}"))
        return ifl_fail(c->error, IFL_E_INPUT,
                        "the command line: the text gives no value for %.100s, or one under a "
                        "condition, expected its words in the command",
                        word);
    if (facts_get(c->facts, name))
        return facts_find(c->facts, FOUND_UNKNOWN, here, word, NULL,
                          word[0] == '$' ? "the text gives no value for it" : NULL, c->error);
    const int code = facts_say(c->facts, name, word, here, false, c->error);
    return code < 0
               ? code
               : facts_find_of(c->facts, name, FOUND_MAPS, here, word, "model", NULL, c->error);
}

/* ---- the line ---- */

/* "# version 0.9.1" behind the line, as `inflight export --server` writes it. */
static int read_comment(const struct words *words, size_t at, struct facts *facts,
                        struct ifl_error *error)
{
    int code = 0;
    if (at + 2 < words->n && strcmp(words->of[at], "#") == 0) {
        code = facts_say(facts, "version", words->of[at + 2], here, false, error);
        if (code == 0)
            code = facts_find(facts, FOUND_MAPS, here, words->of[at + 2], "serving.preset", NULL,
                              error);
        at += 3;
    }
    for (; at < words->n && code == 0; at++) {
        code = skip_node(words, &at, words->n, facts, error);
        if (code == 0 && at < words->n && !words->is_break[at])
            code = facts_find(facts, FOUND_HARMLESS, here, words->of[at], NULL, NULL, error);
    }
    return code;
}

/* Where a command is: files that it names lie in the folder, or the script writes them, or the
 * manifest has them. */
struct origin {
    const char *folder, *script, *manifest;
};

static int read_flags(struct cursor *c)
{
    int code = 0;
    while (code == 0 && c->at < c->n)
        code = is_flag(c->words->of[c->at]) ? read_flag(c) : read_word(c);
    return code;
}

/* Of the flags of a file and of the command line those count that are read last. */
static int read_server(struct cursor *c, const struct origin *origin)
{
    const struct flag_file_at at = {c->words,         c->at,         c->n, origin->script,
                                    origin->manifest, origin->folder};
    const bool is_last = flag_file_is_last(c->facts->server);
    struct words words;
    char *flags;
    int code = flag_file_read(&at, &flags, c->facts, c->error);
    if (code < 0 || !flags)
        return code < 0 ? code : read_flags(c);
    code = words_split(flags, &words, c->error);
    free(flags);
    if (code < 0)
        return code;
    struct cursor file = {&words, 0, words.n, c->facts, c->error};
    code = read_flags(is_last ? c : &file);
    code = code == 0 ? read_flags(is_last ? &file : c) : code;
    words_free(&words);
    return code;
}

static int read_words(const struct words *words, const struct start *start,
                      const struct origin *origin, struct facts *facts, struct ifl_error *error)
{
    const struct program *program = start->program;
    const size_t at = start->at, end = start->end;
    if (!program)
        return ifl_fail(error, IFL_E_INPUT,
                        "the command line starts no server that is known, expected vllm serve, "
                        "python -m vllm.entrypoints.openai.api_server, python -m "
                        "sglang.launch_server, trtllm-serve or trtllm-build");
    int code = facts_set_server(facts, program->server, here, error);
    if (code == 0 && program->backend)
        code = facts_say(facts, "backend", program->backend, here, false, error);
    if (code == 0)
        code = read_before(words, at, facts, error);
    if (code == 0)
        code = read_tag(words->of[at], facts, error);
    struct cursor cursor = {words, at + 1, end, facts, error};
    if (code == 0)
        code = read_server(&cursor, origin);
    return code == 0 ? read_comment(words, end, facts, error) : code;
}

/* A shell's command is read in its place, if it starts a server. */
static int read_inner(const struct words *words, size_t at, struct variables *variables,
                      const struct origin *outer, struct facts *facts, bool *is_read,
                      struct ifl_error *error)
{
    struct words inner;
    struct start start = {0};
    char *script;
    if (shell_expand(words->of[at], variables, &script, error) < 0)
        return error->code;
    const struct origin origin = {outer->folder, script, outer->manifest};
    if (words_split(script, &inner, error) < 0) {
        free(script);
        return 0; /* no command of a shell */
    }
    int code = start_find(&inner, &start, error);
    *is_read = code == 0 && start.program;
    if (*is_read)
        code = facts_set_server(facts, start.program->server, here, error);
    if (*is_read && code == 0)
        code = read_before(words, at, facts, error);
    if (*is_read && code == 0)
        code = read_words(&inner, &start, &origin, facts, error);
    words_free(&inner);
    free(script);
    return code;
}

/* A manifest within other text, as `kubectl apply` may have it, is not read: its flags are no words
 * behind the image. */
static int check_image(const struct words *words, const struct start *start,
                       struct ifl_error *error)
{
    if (!start->program || start->at == 0 || strcmp(words->of[start->at - 1], "image:") != 0)
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "the command line: image: %.200s is of a manifest within other text, expected "
                    "the manifest alone",
                    words->of[start->at]);
}

static int read_script(const struct origin *origin, struct variables *variables,
                       struct facts *facts, struct ifl_error *error)
{
    struct words words;
    struct start start;
    bool is_read = false;
    if (words_split(origin->script, &words, error) < 0)
        return error->code;
    const size_t inner = start_inner(&words);
    int code = inner > 0 ? read_inner(&words, inner, variables, origin, facts, &is_read, error) : 0;
    if (code == 0 && !is_read)
        code = start_find(&words, &start, error);
    if (code == 0 && !is_read)
        code = check_image(&words, &start, error);
    if (code == 0 && !is_read)
        code = read_words(&words, &start, origin, facts, error);
    words_free(&words);
    return code;
}

/* The mark at the end of a line that the next line goes on: a backslash with blanks behind it,
 * which are easily copied along, a backquote of PowerShell, a caret of Windows. NULL: there is
 * none. A comment ends with its line. */
static char *find_mark(char *line, char *end)
{
    char *at = end;
    while (at > line && strchr(" \t\r", at[-1]))
        at--;
    const bool stands_alone = at - line >= 2 && strchr(" \t", at[-2]);
    const bool is_mark =
        at > line && (at[-1] == '\\' ? at < end : stands_alone && strchr("`^", at[-1]));
    return is_mark && line[strspn(line, " \t")] != '#' ? at - 1 : NULL;
}

static void join_lines(char *script)
{
    for (char *line = script, *end; (end = strchr(line, '\n')); line = end + 1) {
        char *mark = find_mark(line, end);
        if (mark)
            *mark = *end = ' ';
    }
}

/* The text is that of the command line, or the command that a manifest stands for. */
static int read_command(const char *command, const struct command_text *of, struct facts *facts,
                        struct ifl_error *error)
{
    struct variables variables = {0};
    char *script = NULL, *joined = strdup(command);
    if (!joined)
        return ifl_fail_nomem(error);
    join_lines(joined);
    int code = shell_expand(joined, &variables, &script, error);
    if (code == 0)
        code =
            read_script(&(struct origin){of->folder, script, command == of->text ? NULL : of->text},
                        &variables, facts, error);
    free(script);
    free(joined);
    variables_free(&variables);
    return code;
}

int command_read(const struct command_text *command, struct facts *facts, struct ifl_error *error)
{
    char *inner = NULL;
    int code = unit_read(command->text, &inner, facts, error);
    if (code == 0 && !inner)
        code = manifest_read(command->text, command->name, &inner, facts, error);
    if (code == 0)
        code = read_command(inner ? inner : command->text, command, facts, error);
    free(inner);
    return code;
}
