#include "import/log.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "import/log_lines.h"
#include "import/log_pools.h"
#include "import/log_ranks.h"
#include "import/log_text.h"
#include "import/names.h"
#include "import/words.h"

enum { MAX_PATTERNS = 160 };

/* Lines that say nothing, as ranges. */
struct unread {
    char text[2048];
    size_t used, n_lines;
    long first, last;
};

struct reader {
    struct facts *facts;
    struct ifl_error *error;
    struct log_text text;
    struct place at;
    char *line; /* of `text` */
    regex_t patterns[MAX_PATTERNS];
    bool compiled[MAX_PATTERNS];
    bool told[MAX_PATTERNS]; /* once a file: harmless ones, LINE_FIRST and LINE_DEVICE */
    struct unread unread;
    bool shares_attention; /* the list of arguments says so */
    struct log_ranks ranks;
    struct log_pools pools;
};

/* ---- lines that say nothing ---- */

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
    if (line->form == LINE_LATEST)
        return facts_replace(r->facts, name, value, r->at, r->error);
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
        if (r->text.is_cut && !r->line[group->rm_eo])
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
    if (!key)
        return facts_find(r->facts, FOUND_HARMLESS, r->at, what + strspn(what, " #"), NULL, NULL,
                          r->error);
    const int code =
        facts_find(r->facts, FOUND_MAPS, r->at, what + strspn(what, " #"), key, NULL, r->error);
    if (code == 0)
        r->facts->findings[r->facts->n_findings - 1].name = line->facts[0];
    return code;
}

/* The first line of a file is of the model. Later ones may be of another, such as a draft model:
 * the server's argument says whether there is one. */
static int take_first(struct reader *r, const struct log_line *line, const regmatch_t *groups)
{
    char value[64];
    const regmatch_t *group = &groups[1];
    bool *told = &r->told[line - log_lines];
    if (!*told) {
        *told = true;
        return take_facts(r, line, groups);
    }
    if (r->text.is_cut && !r->line[group->rm_eo])
        return refuse_cut(r);
    snprintf(value, sizeof value, "%.*s", (int)(group->rm_eo - group->rm_so),
             r->line + group->rm_so);
    return facts_also(r->facts, line->facts[1], value, r->at, r->error);
}

static int take_unread(struct reader *r, const struct log_line *line, const regmatch_t *groups)
{
    char what[256], value[256];
    snprintf(what, sizeof what, "%.*s", (int)(groups[0].rm_eo - groups[0].rm_so),
             r->line + groups[0].rm_so);
    snprintf(value, sizeof value, "%.*s", (int)(groups[1].rm_eo - groups[1].rm_so),
             r->line + groups[1].rm_so);
    if (facts_also(r->facts, line->facts[0], value, r->at, r->error) < 0)
        return r->error->code;
    return facts_find(r->facts, FOUND_UNKNOWN, r->at, what, NULL, line->says, r->error);
}

/* What was said of the facts before was of a run that is over. */
static int take_anew(struct reader *r, const struct log_line *line)
{
    facts_forget(r->facts, line->facts, MAX_LINE_FACTS, r->at.file,
                 "of the run that measures memory");
    return facts_find(r->facts, FOUND_HARMLESS, r->at, line->part, NULL, NULL, r->error);
}

/* vLLM may take another dtype, and leave chunks or the prefix cache on or off, whatever it is
 * asked. SGLang lists its arguments once it has changed those of attention in parallel
 * (server_args.py, _handle_data_parallelism). */
static bool is_forced(const struct reader *r, enum line_form form, const struct server_flag *flag)
{
    static const char *const names[] = {"dtype", "enable_prefix_caching", "enable_chunked_prefill",
                                        "chunked_prefill_size", "schedule_conservativeness"};
    const size_t n = r->shares_attention ? 5 : 3;
    bool is_changed = form == LINE_RESOLVED;
    for (size_t i = 0; form == LINE_START && i < n; i++)
        is_changed = is_changed || strcmp(flag->name, names[i]) == 0;
    return is_changed;
}

/* Python's enums are printed as <Policy.FIRST: 'FIRST'>: the value is behind the colon. */
static const char *enum_value(const char *value, char text[64])
{
    const char *colon = value[0] == '<' ? strchr(value, ':') : NULL;
    if (!colon)
        return value;
    colon += strspn(colon, ": '");
    snprintf(text, 64, "%.*s", (int)strcspn(colon, "'>"), colon);
    return text;
}

/* The ends of the ranges of tokens that an engine compiles for, the last of which is its budget
 * (config/vllm.py, _set_compile_ranges). */
static int note_compiled(struct reader *r, const char *config)
{
    const char *ends = strstr(config, "compile_ranges_");
    ends = ends ? ends + strspn(ends, "abcdefghijklmnopqrstuvwxyz_': ") : "";
    const char *end = ends + strspn(ends, "[0123456789, "), *last = end;
    char text[32];
    while (last > ends && last[-1] >= '0' && last[-1] <= '9')
        last--;
    if (*ends != '[' || *end != ']' || last == end)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)(end - last), last);
    return facts_also(r->facts, "compiled_tokens", text, r->at, r->error);
}

/* One argument of a list. */
static int take_argument(struct reader *r, enum line_form form, const struct argument *argument)
{
    char written[256], text[64];
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
    if (form == LINE_START && strcmp(argument->name, "compilation_config") == 0 &&
        note_compiled(r, value) < 0)
        return r->error->code;
    if (strncmp(value, "torch.", 6) == 0)
        value += 6;
    value = enum_value(value, text);
    return facts_argument(r->facts, flag, value, written, r->at, is_forced(r, form, flag),
                          r->error);
}

/* True if a list that has not ended before the line's end goes on in the line behind it: that one
 * begins as no logger begins a line, and goes on with an argument where the last one may be whole.
 */
static bool goes_on(const char *next, bool is_open)
{
    static const char *const value = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789_.:/'-";
    if (is_open || log_text_is_record(next))
        return !log_text_is_record(next);
    const char *comma = next + strspn(next, value);
    const char *name = next[strcspn(next, "=,")] == '=' ? next + strspn(next, " ")
                       : *comma == ','                  ? comma + 1 + strspn(comma + 1, " ")
                                                        : "";
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && name[n] == '=';
}

static int refuse_open(const struct reader *r, bool has_next)
{
    if (r->text.is_cut)
        return refuse_cut(r);
    return facts_fail(
        r->at, r->error, "the list of arguments ends within a value, %s: expected whole lines",
        has_next ? "and the line behind does not go on with it" : "where the log ends");
}

/* Terminals and pagers break long lines. A list that is not whole is put together again where the
 * lines behind go on with it; else it is refused, since flags would be missing. */
static int join_list(struct reader *r, const char *at)
{
    const bool has_bracket = at > r->line && strchr("([{", at[-1]);
    const long first = r->text.at;
    char what[96];
    int code = 0;
    for (;;) {
        const enum list_end end = list_end_of(at, has_bracket);
        const bool is_open = end == LIST_OPEN;
        if (end == LIST_CLOSED || (code = log_text_peek(&r->text, r->error)) < 0)
            break;
        if (code > 0 && goes_on(r->text.ahead, is_open) && log_text_join(&r->text))
            continue;
        if (is_open)
            return refuse_open(r, code > 0);
        break;
    }
    if (code < 0 || r->text.n_read - (r->text.has_ahead != 0) <= first)
        return code < 0 ? code : 0;
    snprintf(what, sizeof what, "lines %ld to %ld are one", first,
             r->text.n_read - (r->text.has_ahead != 0));
    return facts_find(r->facts, FOUND_ASSUMED, r->at, what, NULL,
                      "the list of arguments goes on behind the line's end", r->error);
}

/* Objects with members that are arguments (llmapi/llm_args.py); of the others, the table has the
 * whole.
 */
static bool has_members(const struct reader *r, const struct argument *argument)
{
    static const char *const names[] = {"kv_cache_config", "scheduler_config"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (r->facts->server == SERVER_TRTLLM && argument->value &&
            strcmp(argument->name, names[i]) == 0 && strchr(argument->value, '('))
            return true;
    return false;
}

/* Members that no flag is called by say more of what one of them sets. */
static int take_members(struct reader *r, enum line_form form, const struct argument *object)
{
    char *at = strchr(object->value, '(') + 1, kv_dtype[] = "kv_cache_dtype";
    struct argument member;
    int code = 0;
    while (code == 0 && argument_next(&at, &member)) {
        if (strcmp(member.name, "dtype") == 0)
            member.name = kv_dtype;
        if (server_flag_find(r->facts->server, member.name, false))
            code = take_argument(r, form, &member);
    }
    return code;
}

static int take_list(struct reader *r, enum line_form form, char *at)
{
    struct argument argument;
    int code = join_list(r, at);
    const size_t n = strlen(at);
    r->shares_attention = strstr(at, "enable_dp_attention=True") != NULL;
    if (code == 0 && r->text.is_cut && n > 0 && !strchr(")]}>", at[n - 1]))
        code = refuse_cut(r);
    while (code == 0 && argument_next(&at, &argument))
        code = has_members(r, &argument) ? take_members(r, form, &argument)
                                         : take_argument(r, form, &argument);
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
    case LINE_LATEST:
        return take_facts(r, line, groups);
    case LINE_FIRST:
        return take_first(r, line, groups);
    case LINE_UNREAD:
        return take_unread(r, line, groups);
    case LINE_ANEW:
        return take_anew(r, line);
    case LINE_POOL:
        return log_pools_take(&r->pools, r->facts, line, r->line, groups, r->at, r->error) < 0
                   ? r->error->code
                   : take_facts(r, line, groups);
    case LINE_LIST:
        return take_list(r, line->form, r->line + groups[0].rm_eo);
    case LINE_WHOLE:
    case LINE_RESOLVED:
        return take_list(r, line->form, r->line + groups[0].rm_so);
    case LINE_START:
        return take_start(r, line, groups);
    case LINE_HARMLESS:
        if (r->told[line - log_lines])
            return 0;
        r->told[line - log_lines] = true;
        return facts_find(r->facts, FOUND_HARMLESS, r->at, line->part, NULL, NULL, r->error);
    case LINE_DEVICE:
        if (r->told[line - log_lines])
            return 0;
        r->told[line - log_lines] = true;
        break;
    case LINE_UNMODELLED:
        break;
    }
    snprintf(what, sizeof what, "%.*s",
             line->pattern ? (int)(groups[0].rm_eo - groups[0].rm_so) : 80,
             line->pattern ? r->line + groups[0].rm_so : line->part);
    return facts_find_of(r->facts, line->facts[0], FOUND_UNMODELLED, r->at, what, NULL, line->says,
                         r->error);
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

/* gpu: its name in the line, or NULL. */
static int note_gpu(struct reader *r, const char *gpu)
{
    if (gpu && facts_say(r->facts, "gpu", gpu, r->at, false, r->error) < 0)
        return r->error->code;
    return gpu ? facts_find(r->facts, FOUND_MAPS, r->at, gpu, "hardware", NULL, r->error) : 0;
}

static int note_front_end(struct reader *r)
{
    const bool is_library = strstr(r->line, " [llm.py:");
    const char *front_end = is_library ? "library" : "api_server";
    if (facts_get(r->facts, front_end) ||
        !(is_library || strstr(r->line, "APIServer") || strstr(r->line, "api_server.py")))
        return 0;
    return facts_say(r->facts, front_end, "True", r->at, false, r->error);
}

/* Reading a list cuts the line into pieces. */
static bool cuts_line(enum line_form form)
{
    return form == LINE_LIST || form == LINE_RESOLVED || form == LINE_WHOLE || form == LINE_START;
}

/* A line may say several things; one that only shows that it is known counts if nothing else does.
 */
static int take_known(struct reader *r, bool *known)
{
    *known = false;
    for (size_t i = 0; i < n_log_lines; i++) {
        const struct log_line *line = &log_lines[i];
        regmatch_t groups[MAX_LINE_FACTS + 1] = {{0}};
        if (line->server != r->facts->server || (*known && line->form == LINE_HARMLESS) ||
            !matches(r, i, groups))
            continue;
        *known = true;
        if (take(r, line, groups) < 0)
            return r->error->code;
        if (cuts_line(line->form))
            break;
    }
    return 0;
}

static int read_line(struct reader *r)
{
    bool known;
    if (is_of_request(r->line)) {
        note_unread(&r->unread, r->at.line);
        return 0;
    }
    const bool is_blank = !r->line[strspn(r->line, " \t")];
    const char *gpu = gpu_name_in(r->line);
    if (note_gpu(r, gpu) < 0 || note_front_end(r) < 0)
        return r->error->code;
    log_ranks_note(&r->ranks, r->line, r->at);
    log_pools_see(&r->pools, r->line);
    if (take_known(r, &known) < 0)
        return r->error->code;
    if (!known && !gpu && !is_blank)
        note_unread(&r->unread, r->at.line);
    return 0;
}

/* ---- a file ---- */

/* Lines that one server alone prints name it; what several print is read by the rules of that one.
 */
static bool names_server(const struct log_line *line)
{
    return line->form != LINE_HARMLESS && line->form != LINE_UNMODELLED && !line->is_shared;
}

static int find_server(struct reader *r)
{
    if (is_of_request(r->line))
        return 0;
    for (size_t i = 0; i < n_log_lines; i++) {
        regmatch_t groups[MAX_LINE_FACTS + 1];
        if (names_server(&log_lines[i]) && matches(r, i, groups))
            return facts_set_server(r->facts, log_lines[i].server, r->at, r->error);
    }
    return 0;
}

static int each_line(struct reader *r, int (*read)(struct reader *))
{
    int code;
    while ((code = log_text_next(&r->text, r->error)) > 0) {
        r->line = r->text.line;
        r->at.line = r->text.at;
        if (read(r) < 0)
            return r->error->code;
    }
    return code;
}

static int note_zeros(struct reader *r)
{
    const struct place at = {r->at.file, r->text.zeros_at};
    char what[64];
    snprintf(what, sizeof what, "bytes of 0: %ld are skipped", r->text.n_zeros);
    return r->text.n_zeros > 0
               ? facts_find(r->facts, FOUND_HARMLESS, at, what, NULL, NULL, r->error)
               : 0;
}

static int read_all(struct reader *r)
{
    int code = each_line(r, find_server);
    if (code < 0 || !r->facts->has_server)
        return code;
    log_text_rewind(&r->text);
    code = each_line(r, read_line);
    if (code == 0)
        code = log_ranks_say(&r->ranks, r->facts, r->error);
    if (code == 0)
        code = note_zeros(r);
    return code < 0 ? code : report_unread(r);
}

int log_read(const char *path, struct facts *facts, struct ifl_error *error)
{
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return ifl_fail_nomem(error);
    r->facts = facts;
    r->error = error;
    r->at.file = path;
    log_ranks_init(&r->ranks);
    int code = log_text_open(&r->text, path, error);
    if (code == 0)
        code = read_all(r);
    for (size_t i = 0; i < MAX_PATTERNS; i++)
        if (r->compiled[i])
            regfree(&r->patterns[i]);
    log_text_close(&r->text);
    free(r);
    return code;
}
