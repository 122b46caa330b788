/* JSON and JSON Lines: jansson parses, errors carry the line and, where known, the column. */
#include "traces.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { FLAGS = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL };

/* `line` and `column` are the place where the text that jansson parsed began. */
static int fail_parse(const char *path, int line, int column, const json_error_t *found,
                      struct ifl_error *error)
{
    char text[JSON_ERROR_TEXT_LENGTH];
    if (json_error_code(found) == json_error_out_of_memory)
        return ifl_fail_nomem(error);
    trace_printable(text, sizeof text, found->text, strlen(found->text));
    return ifl_fail_at(error, path, line + found->line - 1,
                       found->line == 1 ? column + found->column : found->column,
                       "not a JSON object: %s", text);
}

static int check_object(const char *path, int line, const json_t *value, struct ifl_error *error)
{
    if (json_is_object(value))
        return 0;
    return ifl_fail_at(error, path, line, 0, "a value that is no object, expected {...}");
}

/* ---- an object a line ---- */

json_t *trace_json_parse(const char *path, int line, const char *text, size_t n,
                         struct ifl_error *error)
{
    json_error_t found;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--; /* so that an error at the end of the line is reported in this line */
    json_t *value = json_loadb(text, n, FLAGS | JSON_DECODE_ANY, &found);
    if (!value) {
        fail_parse(path, line, 0, &found, error);
    } else if (check_object(path, line, value, error) < 0) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

static int hand_out(const struct trace_json_reader *reader, const struct trace_record *record,
                    struct ifl_error *error)
{
    struct trace_rows *rows = reader->rows;
    const size_t n = rows ? rows->trace->n : 0;
    int rc = 0;
    if (rows && !rows->first_record_seen)
        rc = trace_attributes_want_record(rows, record, error);
    if (rows)
        rows->first_record_seen = true;
    if (rc == 0)
        rc = reader->record(reader->self, record, error);
    return rc < 0 || !rows || rows->trace->n == n
               ? rc
               : trace_attributes_take_record(rows, record, error);
}

int trace_jsonl_read(struct trace_input *input, const struct trace_json_reader *reader,
                     struct ifl_error *error)
{
    const char *text;
    size_t n;
    int rc;
    while ((rc = trace_input_line(input, &text, &n, error)) > 0) {
        json_t *value = trace_json_parse(input->path, input->line, text, n, error);
        if (!value)
            return error->code;
        const struct trace_record record = {input->path, input->line, value};
        rc = hand_out(reader, &record, error);
        json_decref(value);
        if (rc < 0)
            break;
    }
    return rc;
}

/* ---- a list of objects ----
 *
 * jansson would hold the whole list in memory. So the brackets and commas between the elements are
 * read here, and jansson parses each element, fed byte by byte so that it stops directly behind it.
 */

struct feed {
    struct trace_input *input;
    struct ifl_error *error;
    int rc; /* error of the input; jansson sees only an end of the text */
    int line, column;
    size_t n_bytes; /* of the element so far */
};

static int next_byte(struct feed *feed, char *byte)
{
    feed->rc = trace_input_byte(feed->input, byte, feed->error);
    if (feed->rc > 0 && *byte == '\n') {
        feed->line++;
        feed->column = 0;
    } else if (feed->rc > 0) {
        feed->column++;
    }
    return feed->rc;
}

static size_t feed_byte(void *buffer, size_t size, void *context)
{
    struct feed *feed = context;
    (void)size;
    if (feed->n_bytes++ == feed->input->most_bytes)
        feed->rc = trace_input_fail_long(feed->input, feed->line, feed->error);
    return feed->rc >= 0 && next_byte(feed, buffer) > 0;
}

static int next_token(struct feed *feed, char *token)
{
    int rc;
    while ((rc = next_byte(feed, token)) > 0)
        if (!strchr(" \t\r\n", *token) || *token == '\0')
            break;
    return rc;
}

static int fail_token(const struct feed *feed, char token, const char *expected)
{
    char found[2];
    if (feed->rc < 0)
        return feed->rc;
    if (feed->rc == 0)
        return ifl_fail_at(feed->error, feed->input->path, feed->line, feed->column + 1,
                           "not JSON: the file ends here, expected %s", expected);
    return ifl_fail_at(feed->error, feed->input->path, feed->line, feed->column,
                       "not JSON: '%s', expected %s",
                       trace_printable(found, sizeof found, &token, 1), expected);
}

/* Reads an element. Its first byte was read already and is given back. */
static int read_element(struct feed *feed, const struct trace_json_reader *reader)
{
    json_error_t found;
    const int line = feed->line, column = feed->column - 1;
    feed->input->begin--;
    feed->column--;
    feed->n_bytes = 0;
    json_t *value = json_load_callback(feed_byte, feed, FLAGS | JSON_DISABLE_EOF_CHECK, &found);
    if (!value)
        return feed->rc < 0 ? feed->rc
                            : fail_parse(feed->input->path, line, column, &found, feed->error);
    const struct trace_record record = {feed->input->path, line, value};
    const int rc = hand_out(reader, &record, feed->error);
    json_decref(value);
    return rc;
}

static int read_end(struct feed *feed)
{
    char token;
    return next_token(feed, &token) == 0 ? 0 : fail_token(feed, token, "the end of the file");
}

int trace_json_list_read(struct trace_input *input, const struct trace_json_reader *reader,
                         struct ifl_error *error)
{
    struct feed feed = {.input = input, .error = error, .line = input->line + 1};
    char token = '\0';
    if (next_token(&feed, &token) <= 0 || token != '[')
        return fail_token(&feed, token, "'['");
    if (next_token(&feed, &token) > 0 && token == ']')
        return read_end(&feed);
    for (;;) {
        if (feed.rc <= 0 || token != '{')
            return fail_token(&feed, token, "'{'");
        const int rc = read_element(&feed, reader);
        if (rc < 0)
            return rc;
        if (next_token(&feed, &token) > 0 && token == ']')
            return read_end(&feed);
        if (feed.rc <= 0 || token != ',')
            return fail_token(&feed, token, "',' or ']'");
        next_token(&feed, &token);
    }
}

/* ---- objects one behind the other ---- */

int trace_json_objects_read(struct trace_input *input, const struct trace_json_reader *reader,
                            struct ifl_error *error)
{
    struct feed feed = {.input = input, .error = error, .line = input->line + 1};
    char token;
    while (next_token(&feed, &token) > 0) {
        if (token != '{')
            return fail_token(&feed, token, "'{'");
        const int rc = read_element(&feed, reader);
        if (rc < 0)
            return rc;
    }
    return feed.rc;
}

/* Tries the first line, since most files have one object per line. An object over many lines needs
 * the whole file in memory. */
json_t *trace_json_first(struct trace_input *input, struct ifl_error *error)
{
    const char *text;
    size_t n;
    json_error_t found;
    int rc = trace_input_peek(input, &text, &n, error);
    if (rc <= 0)
        return NULL;
    json_t *value = trace_json_parse(input->path, input->line + 1, text, n, error);
    if (value)
        return value;
    struct ifl_error later = {0};
    rc = trace_input_peek_all(input, &text, &n, &later);
    value = rc > 0 ? json_loadb(text, n, FLAGS | JSON_DISABLE_EOF_CHECK, &found) : NULL;
    if (rc > 0 && !value && json_error_code(&found) == json_error_out_of_memory)
        ifl_fail_nomem(&later);
    if (later.code < 0)
        *error = later;
    return value;
}

/* ---- values, as readers ask for them ---- */

int trace_value_fail(const struct trace_record *record, const char *name, const json_t *value,
                     const char *expected, struct ifl_error *error)
{
    char *dumped = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    char found[48] = "missing";
    if (dumped)
        trace_printable(found, sizeof found, dumped, strlen(dumped));
    free(dumped);
    return ifl_fail_at(error, record->path, record->line, 0, "%s is %s, expected %s", name, found,
                       expected);
}

int trace_record_fail(const struct trace_record *record, const char *key, const char *expected,
                      struct ifl_error *error)
{
    ifl_assert(json_is_object(record->value));
    return trace_value_fail(record, key, json_object_get(record->value, key), expected, error);
}

int trace_record_object(const struct trace_record *record, const char *key,
                        struct trace_record *inner, struct ifl_error *error)
{
    ifl_assert(json_is_object(record->value));
    *inner = (struct trace_record){record->path, record->line, json_object_get(record->value, key)};
    return json_is_object(inner->value) ? 0 : trace_record_fail(record, key, "{...}", error);
}

static int fail_item(const struct trace_record *record, const char *key, size_t i,
                     const json_t *item, struct ifl_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "%s[%zu]", key, i);
    return trace_value_fail(record, name, item, "{...}", error);
}

int trace_record_each(const struct trace_record *record, const char *key, const char *expected,
                      int (*take)(struct trace_rows *rows, const struct trace_record *item,
                                  struct ifl_error *error),
                      struct trace_rows *rows, struct ifl_error *error)
{
    ifl_assert(json_is_object(record->value));
    const json_t *list = json_object_get(record->value, key);
    int rc = json_is_array(list) ? 0 : trace_record_fail(record, key, expected, error);
    for (size_t i = 0; rc >= 0 && i < json_array_size(list); i++) {
        const struct trace_record item = {record->path, record->line, json_array_get(list, i)};
        rc = json_is_object(item.value) ? take(rows, &item, error)
                                        : fail_item(record, key, i, item.value, error);
    }
    return rc;
}

const char *trace_record_name(const struct trace_record *record, const char *key,
                              struct ifl_error *error)
{
    ifl_assert(json_is_object(record->value));
    const json_t *value = json_object_get(record->value, key);
    const char *text = json_string_value(value);
    if (text && strcspn(text, "\r\n") == json_string_length(value))
        return text;
    trace_record_fail(record, key, "a text on one line, without NUL characters", error);
    return NULL;
}

int trace_record_whole(const struct trace_record *record, const char *key, int64_t min, int64_t max,
                       int64_t *value, struct ifl_error *error)
{
    ifl_assert(json_is_object(record->value));
    const json_t *found = json_object_get(record->value, key);
    char expected[96];
    *value = json_integer_value(found);
    if (json_is_integer(found) && *value >= min && *value <= max)
        return 0;
    snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)min,
             (long long)max);
    return trace_record_fail(record, key, expected, error);
}

int trace_record_tokens(const struct trace_record *record, const char *key, int32_t *tokens,
                        struct ifl_error *error)
{
    int64_t value;
    const int rc = trace_record_whole(record, key, 0, INT32_MAX, &value, error);
    if (rc == 0)
        *tokens = (int32_t)value;
    return rc;
}

/* Nanoseconds since 1970 exceed the precision of a double, so whole units and the fraction are
 * converted separately. */
static int64_t real_ns(double n_units, int64_t unit_ns)
{
    const double whole = floor(n_units);
    const int64_t max_units = TRACE_MAX_S * (IFL_NS_PER_S / unit_ns);
    if (!(whole >= 0 && whole < (double)max_units))
        return -1;
    return (int64_t)whole * unit_ns + llround((n_units - whole) * (double)unit_ns);
}

int trace_record_stamp(const struct trace_record *record, const char *key, int64_t unit_ns,
                       int64_t *ns, struct ifl_error *error)
{
    ifl_assert(json_is_object(record->value));
    const json_t *found = json_object_get(record->value, key);
    const json_int_t n_units = json_integer_value(found);
    *ns = -1;
    if (json_is_integer(found) && n_units < TRACE_MAX_S * (IFL_NS_PER_S / unit_ns))
        *ns = n_units < 0 ? -1 : n_units * unit_ns;
    else if (json_is_real(found))
        *ns = real_ns(json_real_value(found), unit_ns);
    if (*ns >= 0 && *ns != IFL_NEVER)
        return 0;
    return trace_record_fail(record, key, "a number from 0, at most 292 years", error);
}
