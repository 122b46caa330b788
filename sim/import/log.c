#include "import/log.h"

#include <errno.h>
#include <jansson.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "import/log_lines.h"
#include "import/names.h"
#include "import/words.h"
#include "inflight/inputs.h"

enum { MAX_LINE_BYTES = 1 << 20, MAX_PATTERNS = 128 };

/* Lines that say nothing, as ranges. */
struct unread {
    char text[2048];
    size_t used, n_lines;
    long first, last;
};

struct reader {
    struct facts *facts;
    struct ifl_error *error;
    struct place at;
    char *line; /* [MAX_LINE_BYTES + 1] */
    regex_t patterns[MAX_PATTERNS];
    bool compiled[MAX_PATTERNS];
    bool told[MAX_PATTERNS]; /* harmless ones: once a file */
    struct unread unread;
    bool is_cut; /* the file ends within the line */
};

/* ---- lines ---- */

/* Removes colours and the like: ESC [, parameters, intermediate bytes and a final one (ECMA-48,
 * 5.4). */
static void strip_colours(char *line)
{
    char *out = line;
    for (char *at = line; *at; at++) {
        if (at[0] == 0x1b && at[1] == '[') {
            at += 2 + strspn(at + 2, "0123456789:;<=>?");
            at += strspn(at, " !\"#$%&'()*+,-./");
            if (!*at)
                break;
            continue;
        }
        *out++ = *at;
    }
    *out = '\0';
}

/* A line of a container's log or of a structured logger is an object that has the server's line in
 * one of its members. */
static bool unwrap(char *line)
{
    static const char *const members[] = {"log", "message", "msg"};
    json_t *object = *line == '{' ? json_loads(line, 0, NULL) : NULL;
    const char *text = NULL;
    for (size_t i = 0; !text && i < sizeof members / sizeof *members; i++)
        text = json_string_value(json_object_get(object, members[i]));
    const bool is_wrapped = text;
    if (is_wrapped) { /* no longer than the object around it */
        snprintf(line, MAX_LINE_BYTES + 1, "%s", text);
        line[strcspn(line, "\r\n")] = '\0';
        strip_colours(line);
    }
    json_decref(object);
    return is_wrapped;
}

/* What a file with bytes of 0 is, by its first two. */
static int refuse_binary(const struct reader *r, size_t n)
{
    const unsigned char *line = (const unsigned char *)r->line;
    const bool is_first = r->at.line == 1 && n >= 2;
    const bool is_utf16 = is_first && line[0] + line[1] == 0xff + 0xfe && line[0] >= 0xfe;
    const bool is_gzip = is_first && line[0] == 0x1f && line[1] == 0x8b;
    return facts_fail(r->at, r->error, "a byte of 0, expected the text of a log%s",
                      is_utf16  ? ": this is UTF-16, UTF-8 is read"
                      : is_gzip ? ": this is compressed, gunzip it first"
                                : "");
}

/* 1: there is a line; 0: the file ends. */
static int next_line(struct reader *r, FILE *in)
{
    size_t n = 0;
    int c = 0;
    r->at.line++;
    while (n <= MAX_LINE_BYTES && (c = getc_unlocked(in)) != EOF && c != '\n') {
        if (c == '\0')
            return refuse_binary(r, n);
        r->line[n++] = (char)c;
    }
    if (n > MAX_LINE_BYTES)
        return facts_fail(r->at, r->error, "a line of more than 1 MiB, expected a server's log");
    if (ferror(in) && errno == EISDIR)
        return ifl_fail_at(r->error, r->at.file, 0, 0, "cannot be read: Is a directory");
    if (ferror(in))
        return ifl_fail(r->error, IFL_E_IO, "%s: cannot be read: %s", r->at.file, strerror(errno));
    r->is_cut = c == EOF;
    n -= n > 0 && r->line[n - 1] == '\r';
    r->line[n] = '\0';
    strip_colours(r->line);
    if (unwrap(r->line))
        r->is_cut = false;
    return n > 0 || c != EOF;
}

static void end_range(struct unread *unread)
{
    if (unread->first == 0)
        return;
    const size_t left = sizeof unread->text - unread->used;
    const char *comma = unread->used ? ", " : "";
    if (left < 64) {
        if (left > 8 && unread->text[unread->used - 1] != '.')
            unread->used += (size_t)snprintf(unread->text + unread->used, left, ", ...");
    } else if (unread->first == unread->last) {
        unread->used +=
            (size_t)snprintf(unread->text + unread->used, left, "%s%ld", comma, unread->first);
    } else {
        unread->used += (size_t)snprintf(unread->text + unread->used, left, "%s%ld-%ld", comma,
                                         unread->first, unread->last);
    }
    unread->first = 0;
}

static void note_unread(struct unread *unread, long line)
{
    unread->n_lines++;
    if (unread->first != 0 && unread->last == line - 1) {
        unread->last = line;
        return;
    }
    end_range(unread);
    unread->first = unread->last = line;
}

static int report_unread(struct reader *r)
{
    char what[sizeof r->unread.text + 64];
    end_range(&r->unread);
    if (r->unread.n_lines == 0)
        return 0;
    snprintf(what, sizeof what, "%zu line%s: %s", r->unread.n_lines,
             r->unread.n_lines == 1 ? "" : "s", r->unread.text);
    return facts_find(r->facts, FOUND_UNREAD, (struct place){r->at.file, 0}, what, NULL, NULL,
                      r->error);
}

/* ---- what a line says ---- */

static int say(struct reader *r, const struct log_line *line, const char *name, const char *value)
{
    if (line->form == LINE_ALSO)
        return facts_also(r->facts, name, value, r->at, r->error);
    return facts_say(r->facts, name, value, r->at, line->form == LINE_FORCED, r->error);
}

/* The digits behind the end of a file that was cut are gone. */
static int refuse_cut(const struct reader *r)
{
    return facts_fail(r->at, r->error, "the log ends within this line, expected whole lines");
}

/* The groups of the match are facts. */
static int take_facts(struct reader *r, const struct log_line *line, const regmatch_t *groups)
{
    char value[256], what[512];
    const regmatch_t *whole = &groups[0];
    for (size_t i = 0; i < MAX_LINE_FACTS; i++) {
        const regmatch_t *group = &groups[i + 1];
        if (!line->facts[i] || group->rm_so < 0)
            continue;
        if (r->is_cut && !r->line[group->rm_eo])
            return refuse_cut(r);
        snprintf(value, sizeof value, "%.*s", (int)(group->rm_eo - group->rm_so),
                 r->line + group->rm_so);
        if (strcmp(line->facts[i], "async_scheduling") == 0)
            snprintf(value, sizeof value, "%s", value[0] == 'e' ? "True" : "False");
        if (say(r, line, line->facts[i], value) < 0)
            return r->error->code;
    }
    snprintf(what, sizeof what, "%.*s", (int)(whole->rm_eo - whole->rm_so), r->line + whole->rm_so);
    const char *key = line->keys[0] ? line->keys[0] : line->keys[1] ? line->keys[1] : line->keys[2];
    return facts_find(r->facts, FOUND_MAPS, r->at, what + strspn(what, " #"), key, NULL, r->error);
}

/* vLLM may take another dtype, and leave chunks or the prefix cache on or off, whatever it is
 * asked. */
static bool is_forced(enum line_form form, const struct server_flag *flag)
{
    return form == LINE_RESOLVED ||
           (form == LINE_START &&
            (strcmp(flag->name, "dtype") == 0 || strcmp(flag->name, "enable_prefix_caching") == 0 ||
             strcmp(flag->name, "enable_chunked_prefill") == 0));
}

/* One argument of a list. */
static int take_argument(struct reader *r, enum line_form form, const struct argument *argument)
{
    char written[256];
    const char *value = argument->value ? argument->value : "";
    const struct server_flag *flag = server_flag_find(r->facts->server, argument->name, false);
    snprintf(written, sizeof written, "%s%s%.180s", argument->name, argument->value ? "=" : "",
             value);
    if (strcmp(argument->name, "max_total_num_tokens") == 0) {
        const int code = facts_say(r->facts, "num_tokens", value, r->at, false, r->error);
        return code < 0 ? code
                        : facts_find(r->facts, FOUND_MAPS, r->at, written, "serving.kv.num_blocks",
                                     NULL, r->error);
    }
    if (strcmp(argument->name, "available_gpu_mem") == 0)
        return facts_find(r->facts, FOUND_HARMLESS, r->at, written, NULL, NULL, r->error);
    if (!flag)
        return facts_find(r->facts, FOUND_UNKNOWN, r->at, written, NULL, NULL, r->error);
    if (strncmp(value, "torch.", 6) == 0)
        value += 6;
    return facts_argument(r->facts, flag, value, written, r->at, is_forced(form, flag), r->error);
}

static int take_list(struct reader *r, enum line_form form, char *at)
{
    struct argument argument;
    const size_t n = strlen(at);
    int code = r->is_cut && n > 0 && !strchr(")]}>", at[n - 1]) ? refuse_cut(r) : 0;
    while (code == 0 && argument_next(&at, &argument))
        code = take_argument(r, form, &argument);
    return code;
}

/* The process that a line names: "(EngineCore_DP0 pid=9) ..." is of EngineCore_DP0. */
static void read_process(const char *line, char process[64])
{
    const char *pid = strstr(line, " pid="), *open = pid;
    while (open && open > line && *open != '(')
        open--;
    snprintf(process, 64, "%.*s", open ? (int)(pid - open) : 0, open ? open : "");
}

/* Every replica of a server starts one engine; a second one of the same name is a second server. */
static int note_start(struct reader *r)
{
    char process[64], name[48];
    read_process(r->line, process);
    snprintf(name, sizeof name, "start %.40s", process);
    const struct fact *before = facts_get(r->facts, name);
    if (before)
        return facts_fail(r->at, r->error,
                          "a second server starts here, the first on line %ld of %.200s: expected "
                          "the log of one",
                          before->at.line, before->at.file);
    return facts_also(r->facts, name, "", r->at, r->error);
}

/* V0 has no name in the logs of 0.6; there and in 0.7, the file says which engine it is. */
static int note_engine(struct reader *r)
{
    if (facts_get(r->facts, "engine"))
        return 0;
    return facts_say(r->facts, "engine", strstr(r->line, "core.py") ? "V1" : "V0", r->at, false,
                     r->error);
}

static int take_start(struct reader *r, const struct log_line *line, const regmatch_t *groups)
{
    if (note_start(r) < 0)
        return r->error->code;
    if (line->facts[0] && take_facts(r, line, groups) < 0)
        return r->error->code;
    if (r->facts->server == SERVER_VLLM && note_engine(r) < 0)
        return r->error->code;
    return take_list(r, LINE_START, r->line + groups[0].rm_eo);
}

static int take(struct reader *r, const struct log_line *line, const regmatch_t *groups)
{
    char what[256];
    switch (line->form) {
    case LINE_FACTS:
    case LINE_ALSO:
    case LINE_FORCED:
        return take_facts(r, line, groups);
    case LINE_LIST:
        return take_list(r, line->form, r->line + groups[0].rm_eo);
    case LINE_RESOLVED:
        return take_list(r, line->form, r->line + groups[0].rm_so);
    case LINE_START:
        return take_start(r, line, groups);
    case LINE_HARMLESS:
        if (r->told[line - log_lines])
            return 0;
        r->told[line - log_lines] = true;
        return facts_find(r->facts, FOUND_HARMLESS, r->at, line->part, NULL, NULL, r->error);
    case LINE_UNMODELLED:
        break;
    }
    snprintf(what, sizeof what, "%.*s",
             line->pattern ? (int)(groups[0].rm_eo - groups[0].rm_so) : 80,
             line->pattern ? r->line + groups[0].rm_so : line->part);
    return facts_find(r->facts, FOUND_UNMODELLED, r->at, what, NULL, line->says, r->error);
}

/* Patterns are compiled when their first line comes. */
static bool matches(struct reader *r, size_t i, regmatch_t groups[MAX_LINE_FACTS + 1])
{
    const struct log_line *line = &log_lines[i];
    ifl_require(n_log_lines <= MAX_PATTERNS);
    if (!strstr(r->line, line->part))
        return false;
    if (!line->pattern)
        return true;
    if (!r->compiled[i])
        ifl_require(regcomp(&r->patterns[i], line->pattern, REG_EXTENDED) == 0);
    r->compiled[i] = true;
    return regexec(&r->patterns[i], r->line, MAX_LINE_FACTS + 1, groups, 0) == 0;
}

/* What a request asks and is answered is its client's text, not the server's: vLLM's
 * entrypoints/logger.py (and async_llm_engine.py of 0.6), SGLang's utils/request_logger.py, as text
 * and as JSON. Both write a prompt on one line. */
static bool is_of_request(const char *line)
{
    static const char *const parts[] = {
        "Received request ", "Generated response ", "Receive: obj=",        "Finish: obj=",
        "Receive OpenAI",    "\"request.received",  "\"request.finished\"", " details: prompt: "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(line, parts[i]))
            return true;
    return false;
}

/* A line may say several things; one that only shows that it is known counts if nothing else does.
 */
static int read_line(struct reader *r)
{
    bool known = false;
    if (is_of_request(r->line)) {
        note_unread(&r->unread, r->at.line);
        return 0;
    }
    const char *gpu = gpu_name_in(r->line);
    if (gpu && facts_say(r->facts, "gpu", gpu, r->at, false, r->error) < 0)
        return r->error->code;
    if (gpu && facts_find(r->facts, FOUND_MAPS, r->at, gpu, "hardware", NULL, r->error) < 0)
        return r->error->code;
    if (!facts_get(r->facts, "api_server") &&
        (strstr(r->line, "APIServer") || strstr(r->line, "api_server.py")) &&
        facts_say(r->facts, "api_server", "True", r->at, false, r->error) < 0)
        return r->error->code;
    for (size_t i = 0; i < n_log_lines; i++) {
        regmatch_t groups[MAX_LINE_FACTS + 1] = {{0}};
        if ((known && log_lines[i].form == LINE_HARMLESS) || !matches(r, i, groups))
            continue;
        known = true;
        if (facts_set_server(r->facts, log_lines[i].server, r->at, r->error) < 0 ||
            take(r, &log_lines[i], groups) < 0)
            return r->error->code;
        if (log_lines[i].form == LINE_LIST || log_lines[i].form == LINE_RESOLVED ||
            log_lines[i].form == LINE_START)
            break; /* the list is cut into pieces */
    }
    if (!known && !gpu && r->line[strspn(r->line, " \t")])
        note_unread(&r->unread, r->at.line);
    return 0;
}

/* ---- a file ---- */

static int read_all(struct reader *r, FILE *in)
{
    int code;
    while ((code = next_line(r, in)) > 0)
        if (read_line(r) < 0)
            return r->error->code;
    return code < 0 ? code : report_unread(r);
}

int log_read(const char *path, struct facts *facts, struct ifl_error *error)
{
    FILE *in = fopen(path, "r");
    if (!in)
        return ifl_fail_at(error, path, 0, 0, "cannot be opened: %s", strerror(errno));
    ifl_input_note(path);
    struct reader *r = calloc(1, sizeof *r);
    char *line = malloc(MAX_LINE_BYTES + 2);
    int code = r && line ? 0 : ifl_fail_nomem(error);
    if (code == 0) {
        r->facts = facts;
        r->error = error;
        r->at.file = path;
        r->line = line;
        code = read_all(r, in);
        for (size_t i = 0; i < MAX_PATTERNS; i++)
            if (r->compiled[i])
                regfree(&r->patterns[i]);
    }
    free(line);
    free(r);
    fclose(in);
    return code;
}
