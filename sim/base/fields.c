/* Typed fields: the values of a map, checked against a table and stored in a struct. */
#include "base/tree.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "inflight/nearest.h"
#include "inflight/time.h"

#include "base/server_flags.h"

enum { MAX_DESCRIPTION = 256, MAX_KEYS = 64 };

/* ---- choices: "one|two|three" ---- */

static size_t choice_chars(const char *choices)
{
    return strcspn(choices, "|");
}

static const char *choice_next(const char *choices)
{
    const char *bar = strchr(choices, '|');
    return bar ? bar + 1 : NULL;
}

static int choice_index(const char *choices, const char *word)
{
    const size_t n_chars = strlen(word);
    for (int i = 0; choices; i++, choices = choice_next(choices))
        if (choice_chars(choices) == n_chars && strncmp(choices, word, n_chars) == 0)
            return i;
    return -1;
}

static void choice_name(const char *choices, int index, char *text, size_t n_bytes)
{
    while (index-- > 0 && choice_next(choices))
        choices = choice_next(choices);
    snprintf(text, n_bytes, "%.*s", (int)choice_chars(choices), choices);
}

static void choice_list(const char *choices, char *text, size_t n_bytes)
{
    size_t at = 0;
    for (const char *c = choices; c && at < n_bytes; c = choice_next(c))
        at += (size_t)snprintf(text + at, n_bytes - at, "%s%.*s", c == choices ? "" : ", ",
                               (int)choice_chars(c), c);
}

/* ---- what a field takes ---- */

static void describe_range(const struct ifl_param *field, const char *what, char *text,
                           size_t n_bytes)
{
    const char *const unit = field->unit ? field->unit : "";
    const char *const space = *unit ? " " : "";
    if (field->min == field->max)
        snprintf(text, n_bytes, "%.15g", field->min);
    else if (field->type == IFL_INT)
        snprintf(text, n_bytes, "%s from %.15g to %.15g%s%s", what, fmax(field->min, INT32_MIN),
                 fmin(field->max, INT32_MAX), space, unit);
    else if (field->type == IFL_COUNT && field->max >= 0x1p64)
        snprintf(text, n_bytes, "%s from %.15g to 2^64 - 1%s%s", what, field->min, space, unit);
    else if (isfinite(field->max))
        snprintf(text, n_bytes, "%s from %.15g to %.15g%s%s", what, field->min, field->max, space,
                 unit);
    else if (isfinite(field->min))
        snprintf(text, n_bytes, "a finite number of at least %.15g%s%s", field->min, space, unit);
    else
        snprintf(text, n_bytes, "a finite number%s%s", *unit ? " of " : "", unit);
}

void field_describe(const struct ifl_param *field, char *text, size_t n_bytes)
{
    char choices[MAX_DESCRIPTION];
    switch (field->type) {
    case IFL_INT:
    case IFL_COUNT:
        describe_range(field, "a whole number", text, n_bytes);
        break;
    case IFL_REAL:
    case IFL_TIME:
        describe_range(field, "a number", text, n_bytes);
        break;
    case IFL_BOOL:
        snprintf(text, n_bytes, "true or false");
        break;
    case IFL_CHOICE:
        choice_list(field->choices, choices, sizeof choices);
        snprintf(text, n_bytes, "%s%s", choice_next(field->choices) ? "one of " : "", choices);
        break;
    case IFL_TEXT:
        snprintf(text, n_bytes, "text of at most %d bytes", (int)field->max - 1);
        break;
    }
}

/* ---- numbers ---- */

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

/* True for a number with a leading zero: 010 is eight in one version of YAML, ten in another. */
static bool padded_whole(const char *text)
{
    return text[0] == '0' && text[1] != '\0' && !*skip_digits(text);
}

/* Decimal only: no octal, hexadecimal or base 60, which YAML's versions read differently. */
static bool looks_whole(const char *text)
{
    text += *text == '-' || *text == '+';
    return *text && !*skip_digits(text) && !padded_whole(text);
}

static bool looks_real(const char *text)
{
    text += *text == '-' || *text == '+';
    const char *fraction = skip_digits(text);
    const char *end = *fraction == '.' ? skip_digits(fraction + 1) : fraction;
    if (end - text < 1 || (end - text == 1 && *text == '.'))
        return false;
    if (*end == 'e' || *end == 'E') {
        end += 1 + (end[1] == '-' || end[1] == '+');
        if (!*end)
            return false;
        end = skip_digits(end);
    }
    return !*end;
}

static bool in_range(const struct ifl_param *field, double value)
{
    return value >= field->min && value <= field->max;
}

/* ---- storing ---- */

static void *at(void *base, const struct ifl_param *field)
{
    return (char *)base + field->offset;
}

static void store_int(void *base, const struct ifl_param *field, int32_t value)
{
    memcpy(at(base, field), &value, sizeof value);
}

static void store_count(void *base, const struct ifl_param *field, uint64_t value)
{
    memcpy(at(base, field), &value, sizeof value);
}

static void store_real(void *base, const struct ifl_param *field, double value)
{
    memcpy(at(base, field), &value, sizeof value);
}

static void store_bool(void *base, const struct ifl_param *field, bool value)
{
    memcpy(at(base, field), &value, sizeof value);
}

/* 0 is a word of its own in most keys, such as "none" or "no limit". */
static bool is_below_ns(const struct ifl_param *field, double value)
{
    return field->type == IFL_TIME && value != 0 && ifl_ns_from_s(value) == 0;
}

static void store_seconds(void *base, const struct ifl_param *field, double seconds)
{
    const int64_t ns = ifl_ns_from_s(seconds);
    memcpy(at(base, field), &ns, sizeof ns);
}

/* The rest of the array is zeroed, so that equal fields have equal bytes. */
static void store_text(void *base, const struct ifl_param *field, const char *text)
{
    const size_t cap_bytes = (size_t)field->max;
    memset(at(base, field), 0, cap_bytes);
    memcpy(at(base, field), text, strnlen(text, cap_bytes - 1));
}

static void store_default(void *base, const struct ifl_param *field)
{
    const double value = isnan(field->dflt) ? 0 : field->dflt;
    switch (field->type) {
    case IFL_INT:
    case IFL_CHOICE:
        store_int(base, field, (int32_t)value);
        break;
    case IFL_COUNT:
        store_count(base, field, (uint64_t)value);
        break;
    case IFL_REAL:
        store_real(base, field, value);
        break;
    case IFL_BOOL:
        store_bool(base, field, value != 0);
        break;
    case IFL_TIME:
        store_seconds(base, field, value);
        break;
    case IFL_TEXT:
        store_text(base, field, field->choices ? field->choices : "");
        break;
    }
}

/* ---- reading one value; false: not what the field takes ---- */

static bool read_int(const char *text, const struct ifl_param *field, void *base)
{
    errno = 0;
    const long long value = looks_whole(text) ? strtoll(text, NULL, 10) : LLONG_MAX;
    if (errno || value < INT32_MIN || value > INT32_MAX || !in_range(field, (double)value))
        return false;
    store_int(base, field, (int32_t)value);
    return true;
}

static bool read_count(const char *text, const struct ifl_param *field, void *base)
{
    errno = 0;
    if (!looks_whole(text) || *text == '-')
        return false;
    const unsigned long long value = strtoull(text, NULL, 10);
    if (errno || !in_range(field, (double)value))
        return false;
    store_count(base, field, value);
    return true;
}

static bool read_number(const char *text, const struct ifl_param *field, void *base)
{
    const double value = looks_real(text) ? strtod(text, NULL) : NAN;
    if (!isfinite(value) || !in_range(field, value) || is_below_ns(field, value))
        return false;
    if (field->type == IFL_TIME)
        store_seconds(base, field, value);
    else
        store_real(base, field, value);
    return true;
}

static bool read_bool(const char *text, const struct ifl_param *field, void *base)
{
    const bool yes = strcmp(text, "true") == 0;
    store_bool(base, field, yes);
    return yes || strcmp(text, "false") == 0;
}

static bool read_choice(const char *text, const struct ifl_param *field, void *base)
{
    const int index = choice_index(field->choices, text);
    store_int(base, field, index);
    return index >= 0;
}

static bool read_text(const char *text, const struct ifl_param *field, void *base)
{
    if (strlen(text) >= (size_t)field->max)
        return false;
    store_text(base, field, text);
    return true;
}

static bool read_value(const struct node *node, const struct ifl_param *field, void *base)
{
    if (node->kind != NODE_SCALAR)
        return false;
    const bool word = field->type == IFL_TEXT || field->type == IFL_CHOICE;
    if (node->quoted && !word)
        return false;
    switch (field->type) {
    case IFL_INT:
        return read_int(node->text, field, base);
    case IFL_COUNT:
        return read_count(node->text, field, base);
    case IFL_REAL:
    case IFL_TIME:
        return read_number(node->text, field, base);
    case IFL_BOOL:
        return read_bool(node->text, field, base);
    case IFL_CHOICE:
        return read_choice(node->text, field, base);
    case IFL_TEXT:
        return read_text(node->text, field, base);
    }
    return false;
}

/* ---- messages ---- */

static const char *dot(const char *where)
{
    return *where ? "." : "";
}

/* Adds to a message why a value that looks right is refused. */
static void explain(const struct node *node, const struct ifl_param *field, char *text,
                    size_t n_bytes)
{
    static const char *const old_bools[] = {"yes", "no", "on", "off"};
    *text = '\0';
    if (node->kind != NODE_SCALAR)
        return;
    if (field->type == IFL_BOOL && !node->quoted) {
        for (size_t i = 0; i < sizeof old_bools / sizeof *old_bools; i++)
            if (strcasecmp(node->text, old_bools[i]) == 0)
                snprintf(text, n_bytes, "; yes, no, on and off are only words here");
    } else if (node->quoted && field->type != IFL_TEXT && field->type != IFL_CHOICE) {
        snprintf(text, n_bytes, "; quotes make it text");
    } else if (padded_whole(node->text) && (field->type == IFL_INT || field->type == IFL_COUNT)) {
        snprintf(text, n_bytes, "; no leading zeros");
    } else if (looks_real(node->text) && in_range(field, strtod(node->text, NULL)) &&
               is_below_ns(field, strtod(node->text, NULL))) {
        snprintf(text, n_bytes, "; a time that is not 0 is at least 1e-9 s");
    }
}

/* Adds the nearest choice if the word is a misspelt one. */
static void suggest_choice(const struct node *node, const struct ifl_param *field, char *text,
                           size_t n_bytes)
{
    char names[MAX_KEYS][64];
    const char *words[MAX_KEYS];
    size_t n = 0;
    for (const char *c = field->choices; c && n < MAX_KEYS; c = choice_next(c), n++) {
        choice_name(c, 0, names[n], sizeof names[n]);
        words[n] = names[n];
    }
    const char *near = node->kind == NODE_SCALAR ? ifl_nearest(node->text, words, n) : NULL;
    if (near)
        snprintf(text, n_bytes, "; did you mean %s?", near);
}

static int fail_value(const struct node *node, const char *where, const struct ifl_param *field,
                      struct ifl_error *error)
{
    char found[128], expected[MAX_DESCRIPTION], hint[128];
    field_describe(field, expected, sizeof expected);
    explain(node, field, hint, sizeof hint);
    if (field->type == IFL_CHOICE)
        suggest_choice(node, field, hint, sizeof hint);
    return tree_fail(node, error, "%s%s%s is %s, expected %s%s", where, dot(where), field->name,
                     tree_describe(node, found), expected, hint);
}

static int fail_missing(const struct node *map, const char *where, const struct ifl_param *field,
                        struct ifl_error *error)
{
    char takes[MAX_DESCRIPTION], what[2 * MAX_DESCRIPTION];
    field_describe(field, takes, sizeof takes);
    snprintf(what, sizeof what, "%s%s%s is missing, expected %s%s%s", where, dot(where),
             field->name, takes, *field->doc ? ": " : "", field->doc);
    return map ? tree_fail(map, error, "%s", what) : ifl_fail(error, IFL_E_INPUT, "%s", what);
}

static bool is_known(const char *const *known, size_t n, const char *name)
{
    while (n > 0 && strcmp(known[n - 1], name) != 0)
        n--;
    return n > 0;
}

/* A name of `skip` may be there twice: as a word, and as a map. */
static size_t known_keys(const struct ifl_param *fields, size_t n, const char *const *skip,
                         const char *known[MAX_KEYS])
{
    size_t n_known = 0;
    for (size_t i = 0; i < n && n_known < MAX_KEYS; i++)
        known[n_known++] = fields[i].name;
    for (; skip && *skip && n_known < MAX_KEYS; skip++)
        if (!is_known(known, n_known, *skip))
            known[n_known++] = *skip;
    return n_known;
}

static int fail_unknown(const struct node *child, const char *where, const struct ifl_param *fields,
                        size_t n, const char *const *skip, struct ifl_error *error)
{
    const char *known[MAX_KEYS];
    const size_t n_known = known_keys(fields, n, skip, known);
    const char *near = ifl_nearest(child->key, known, n_known);
    char list[512] = "nothing here";
    for (size_t i = 0, length = 0; i < n_known && length < sizeof list; i++)
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", known[i]);
    char path[MAX_DESCRIPTION];
    snprintf(path, sizeof path, "%s%s%.100s", where, dot(where), child->key);
    enum server server;
    const struct server_flag *flag = server_flag_meant(child->key, &server);
    const bool is_this = flag && flag->key && strcmp(flag->key, path) == 0; /* of another module */
    if (flag && !is_this)
        return tree_fail(child, error, "unknown key %s%s%.100s, %s here", where, dot(where),
                         child->key, server_flag_describe(flag, server, list, sizeof list));
    if (near)
        return tree_fail(child, error, "unknown key %s%s%.100s, did you mean %s?", where,
                         dot(where), child->key, near);
    return tree_fail(child, error, "unknown key %s%s%.100s, expected %s%s", where, dot(where),
                     child->key, n_known > 1 ? "one of " : "", list);
}

/* ---- reading a map ---- */

static int check_keys(const struct node *map, const char *where, const struct ifl_param *fields,
                      size_t n, const char *const *skip, struct ifl_error *error)
{
    for (size_t i = 0; i < map->n; i++) {
        bool known = false;
        for (size_t j = 0; j < n && !known; j++)
            known = strcmp(map->of[i]->key, fields[j].name) == 0;
        for (const char *const *name = skip; name && *name && !known; name++)
            known = strcmp(map->of[i]->key, *name) == 0;
        if (!known)
            return fail_unknown(map->of[i], where, fields, n, skip, error);
    }
    return 0;
}

int field_read(const struct node *node, const char *where, const struct ifl_param *field, void *out,
               struct ifl_error *error)
{
    return read_value(node, field, out) ? 0 : fail_value(node, where, field, error);
}

int fields_read(const struct node *map, const char *where, const struct ifl_param *fields, size_t n,
                const char *const *skip, void *out, struct ifl_error *error)
{
    if (map && tree_is_null(map))
        map = NULL;
    if (map && map->kind != NODE_MAP) {
        char found[128];
        return tree_fail(map, error, "%s is %s, expected a map of keys",
                         *where ? where : "the file", tree_describe(map, found));
    }
    if (map && check_keys(map, where, fields, n, skip, error) < 0)
        return error->code;
    for (size_t i = 0; i < n; i++) {
        const struct node *node = tree_child(map, fields[i].name);
        store_default(out, &fields[i]);
        if (node && !tree_is_null(node)) {
            if (field_read(node, where, &fields[i], out, error) < 0)
                return error->code;
        } else if (isnan(fields[i].dflt)) {
            return fail_missing(map, where, &fields[i], error);
        }
    }
    return 0;
}
