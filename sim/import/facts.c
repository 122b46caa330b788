#include "import/facts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "import/names.h"
#include "import/secrets.h"

void facts_free(struct facts *facts)
{
    for (size_t i = 0; i < facts->n; i++)
        free(facts->of[i].value);
    for (size_t i = 0; i < facts->n_findings; i++)
        free(facts->findings[i].what);
    free(facts->of);
    free(facts->findings);
}

int facts_fail(struct place at, struct ifl_error *error, const char *format, ...)
{
    char text[sizeof error->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!at.file)
        return ifl_fail(error, IFL_E_INPUT, "the command line: %s", text);
    return ifl_fail_at(error, at.file, (int)at.line, 0, "%s", text);
}

static const char *place_words(struct place at, char words[320])
{
    if (at.file)
        snprintf(words, 320, at.line ? "%.255s:%ld" : "%.255s", at.file, at.line);
    else
        snprintf(words, 320, "the command line");
    return words;
}

int facts_set_server(struct facts *facts, enum server server, struct place at,
                     struct ifl_error *error)
{
    char words[320];
    if (facts->has_server && facts->server != server)
        return facts_fail(at, error, "this is of %s, but %s is of %s, expected one server",
                          server_name(server), place_words(facts->server_at, words),
                          server_name(facts->server));
    if (!facts->has_server)
        facts->server_at = at;
    facts->server = server;
    facts->has_server = true;
    return 0;
}

/* ---- facts ---- */

int facts_also(struct facts *facts, const char *name, const char *value, struct place at,
               struct ifl_error *error)
{
    char *copy = strdup(value);
    if (!copy || array_room(&facts->of, facts->n, &facts->cap, 64, sizeof *facts->of) < 0) {
        free(copy);
        return ifl_fail_nomem(error);
    }
    struct fact *fact = &facts->of[facts->n++];
    *fact = (struct fact){.value = copy, .at = at};
    snprintf(fact->name, sizeof fact->name, "%s", name);
    return 0;
}

const struct fact *facts_get(const struct facts *facts, const char *name)
{
    const struct fact *found = NULL;
    for (size_t i = 0; i < facts->n; i++)
        if (strcmp(facts->of[i].name, name) == 0 && (!found || facts->of[i].forced))
            found = &facts->of[i];
    return found;
}

const char *facts_text(const struct facts *facts, const char *name)
{
    const struct fact *fact = facts_get(facts, name);
    return fact ? fact->value : NULL;
}

const char *facts_model_name(const struct facts *facts)
{
    return facts->server == SERVER_SGLANG ? "model_path" : "model";
}

const struct fact *facts_checkpoint(const struct facts *facts)
{
    const struct fact *chosen = facts_get(facts, "chosen_checkpoint");
    return chosen ? chosen : facts_get(facts, facts_model_name(facts));
}

bool facts_true(const struct facts *facts, const char *name, bool dflt)
{
    const char *text = facts_text(facts, name);
    return !text ? dflt
                 : strcmp(text, "True") == 0 || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

bool count_read(const char *text, long long *count)
{
    char digits[32];
    size_t n = 0;
    for (; (*text >= '0' && *text <= '9') || (n > 0 && *text == ','); text++)
        if (*text != ',' && n + 1 < sizeof digits)
            digits[n++] = *text;
    digits[n] = '\0';
    if (n == 0 || n > 10)
        return false;
    const long long scale = *text == 'k' ? 1000 : *text == 'K' ? 1024 : 1;
    *count = strtoll(digits, NULL, 10) * scale;
    return text[scale > 1] == '\0' && *count <= MOST_COUNT;
}

/* The same number, the same truth or the same text. */
static bool is_same(const char *a, const char *b)
{
    long long m, n;
    char *end_a, *end_b;
    if (strcmp(a, b) == 0 || (count_read(a, &m) && count_read(b, &n) && m == n))
        return true;
    const double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return end_a != a && end_b != b && !*end_a && !*end_b && !(x < y) && !(x > y);
}

/* Behind a plus sign a version has what it was built for or of (PEP 440), which a requirement or an
 * image's tag leaves out: 0.8.5+cu121. */
static bool is_same_version(const char *a, const char *b)
{
    const size_t n = strcspn(a, "+");
    return n == strcspn(b, "+") && strncmp(a, b, n) == 0;
}

static bool agree(const char *name, const char *a, const char *b)
{
    return is_same(a, b) || (strcmp(name, "version") == 0 && is_same_version(a, b));
}

int facts_say(struct facts *facts, const char *name, const char *value, struct place at,
              bool forced, struct ifl_error *error)
{
    const struct fact *before = facts_get(facts, name);
    char words[320];
    if (before && before->forced == forced && !agree(name, before->value, value))
        return facts_fail(at, error, "%s is %.100s, but %s says %.100s", name, value,
                          place_words(before->at, words), before->value);
    if (before && before->forced == forced)
        return 0;
    const int code = facts_also(facts, name, value, at, error);
    if (code == 0)
        facts->of[facts->n - 1].forced = forced;
    return code;
}

int facts_replace(struct facts *facts, const char *name, const char *value, struct place at,
                  struct ifl_error *error)
{
    for (size_t i = 0; i < facts->n; i++) {
        struct fact *fact = &facts->of[i];
        if (strcmp(fact->name, name) != 0 || fact->at.file != at.file)
            continue;
        char *copy = strdup(value);
        if (!copy)
            return ifl_fail_nomem(error);
        free(fact->value);
        fact->value = copy;
        fact->at = at;
        return 0;
    }
    return facts_say(facts, name, value, at, false, error);
}

static bool is_named(const struct fact *fact, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (names[i] && strcmp(fact->name, names[i]) == 0)
            return true;
    return false;
}

/* What was found on a line. */
static void decide_line(struct facts *facts, struct place at, const char *says)
{
    for (size_t i = 0; i < facts->n_findings; i++) {
        struct finding *f = &facts->findings[i];
        if (f->at.file != at.file || f->at.line != at.line || f->kind != FOUND_MAPS)
            continue;
        f->kind = FOUND_HARMLESS;
        f->key = NULL;
        f->says = says;
    }
}

void facts_forget(struct facts *facts, const char *const *names, size_t n, const char *file,
                  const char *says)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact fact = facts->of[i];
        if (fact.at.file != file || !is_named(&fact, names, n)) {
            facts->of[n_kept++] = fact;
            continue;
        }
        decide_line(facts, fact.at, says);
        free(fact.value);
    }
    facts->n = n_kept;
}

/* ---- findings ---- */

int facts_find(struct facts *facts, enum finding_kind kind, struct place at, const char *what,
               const char *key, const char *says, struct ifl_error *error)
{
    char *copy = strdup(what);
    if (!copy || array_room(&facts->findings, facts->n_findings, &facts->cap_findings, 64,
                            sizeof *facts->findings) < 0) {
        free(copy);
        return ifl_fail_nomem(error);
    }
    for (char *c = copy; *c; c++) /* one line of the report */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    hide_secrets(copy);
    facts->findings[facts->n_findings++] = (struct finding){kind, at, copy, key, says, NULL};
    return 0;
}

int facts_find_of(struct facts *facts, const char *name, enum finding_kind kind, struct place at,
                  const char *what, const char *key, const char *says, struct ifl_error *error)
{
    const int code = facts_find(facts, kind, at, what, key, says, error);
    if (code == 0)
        facts->findings[facts->n_findings - 1].name = name;
    return code;
}

bool facts_decide(struct facts *facts, const char *name, enum finding_kind kind, const char *key,
                  const char *says)
{
    bool found = false;
    for (size_t i = 0; i < facts->n_findings; i++) {
        struct finding *f = &facts->findings[i];
        if (!f->name || strcmp(f->name, name) != 0)
            continue;
        f->kind = kind;
        f->key = key;
        f->says = says;
        found = true;
    }
    return found;
}

/* Words for nothing at all. */
static bool says_nothing(const char *value)
{
    static const char *const nothing[] = {"None", "", "[]", "{}", "()"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        if (strcmp(value, nothing[i]) == 0)
            return true;
    return false;
}

static bool is_neutral(const struct server_flag *flag, const char *value)
{
    return says_nothing(value) || strcmp(value, "False") == 0 || strcmp(value, "false") == 0 ||
           server_flag_allows(flag, value);
}

/* What the argument asks for; NULL: nothing. */
static const char *asked(const struct server_flag *flag, const char *value)
{
    static const char *const same[][2] = {
        {"half", "float16"}, {"float", "float32"}, {"true", "True"}, {"false", "False"}};
    const bool fits_itself =
        strcmp(value, "-1") == 0 && (strcmp(flag->name, "max_model_len") == 0 ||
                                     strcmp(flag->name, "moe_expert_parallel_size") == 0);
    if (says_nothing(value) || strcmp(value, "auto") == 0 || fits_itself)
        return NULL;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(value, same[i][0]) == 0)
            return same[i][1];
    return value;
}

/* A server may know its model by another path than it was given. */
static bool is_model(const struct server_flag *flag)
{
    return flag->key && strcmp(flag->key, "model") == 0;
}

static int check_model(const struct facts *facts, const char *name, struct place at,
                       struct ifl_error *error)
{
    const struct fact *before = facts_get(facts, facts_model_name(facts));
    char words[320];
    if (!before || !model_names_contradict(before->value, name))
        return 0;
    return facts_fail(at, error, "the model is %.200s, but %s says %.200s", name,
                      place_words(before->at, words), before->value);
}

/* A log may repeat the value in other words, so that two of them are no contradiction. */
static int depends(struct facts *facts, const struct server_flag *flag, const char *value,
                   const char *written, struct place at, struct ifl_error *error)
{
    const int code = facts_also(facts, flag->name, value, at, error);
    return code == 0
               ? facts_find_of(facts, flag->name, FOUND_MAPS, at, written, flag->key, NULL, error)
               : code;
}

/* Python's argparse takes the last of several. */
static void forget_former(struct facts *facts, const struct server_flag *flag)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact fact = facts->of[i];
        if (strcmp(fact.name, flag->name) != 0 || fact.at.file)
            facts->of[n_kept++] = fact;
        else
            free(fact.value);
    }
    if (n_kept < facts->n)
        facts_decide(facts, flag->name, FOUND_HARMLESS, NULL, "given again: the last one counts");
    facts->n = n_kept;
}

int facts_argument(struct facts *facts, const struct server_flag *flag, const char *value,
                   const char *written, struct place at, bool forced, struct ifl_error *error)
{
    const char *says = asked(flag, value);
    if (is_secret_name(flag->name, strlen(flag->name)))
        written = flag->name;
    if (!at.file && flag->takes != TAKES_JSON && !is_model(flag))
        forget_former(facts, flag);
    const bool may_not_be =
        flag->sense == FLAG_UNMODELLED || (flag->sense == FLAG_MAPS && flag->neutral);
    if (may_not_be && !is_neutral(flag, value)) {
        const int rc = facts_also(facts, flag->name, value, at, error);
        return rc < 0 ? rc
                      : facts_find(facts, FOUND_UNMODELLED, at, written, NULL, flag->what, error);
    }
    if (flag->sense == FLAG_DEPENDS && says)
        return depends(facts, flag, says, written, at, error);
    if (flag->sense != FLAG_MAPS || !says)
        return facts_find(facts, FOUND_HARMLESS, at, written, NULL, NULL, error);
    int code = is_model(flag) ? check_model(facts, says, at, error) : 0;
    if (code == 0 && (!is_model(flag) || !facts_get(facts, flag->name)))
        code = facts_say(facts, flag->name, says, at, forced, error);
    return code == 0
               ? facts_find_of(facts, flag->name, FOUND_MAPS, at, written, flag->key, NULL, error)
               : code;
}
