#include "import/log_text.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/inputs.h"

enum { MAX_LINE_BYTES = 1 << 20 };

/* ---- one line ---- */

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

/* What a file with bytes of 0 is, by its first two; 0: a log may have them. */
static int check_binary(struct place at, const char *bytes, size_t n, struct ifl_error *error)
{
    const unsigned char *line = (const unsigned char *)bytes;
    const bool is_first = at.line == 1 && n >= 2;
    const bool is_utf16 = is_first && line[0] + line[1] == 0xff + 0xfe && line[0] >= 0xfe;
    const bool is_gzip = is_first && line[0] == 0x1f && line[1] == 0x8b;
    if (!is_utf16 && !is_gzip)
        return 0;
    return facts_fail(at, error, "a byte of 0, expected the text of a log%s",
                      is_utf16 ? ": this is UTF-16, UTF-8 is read"
                               : ": this is compressed, gunzip it first");
}

static bool is_of_number(int c)
{
    return (c >= '0' && c <= '9') || c == ',' || c == '.';
}

/* Where a log is emptied while its server writes on (logrotate's copytruncate), the file has zeros
 * up to where the server was. They are skipped, unless digits may have stood there. */
static int skip_zeros(struct log_text *text, const char *line, size_t n, struct ifl_error *error)
{
    const struct place at = {text->path, text->n_read};
    int c = '\0';
    if (check_binary(at, line, n, error) < 0)
        return error->code;
    if (text->n_zeros == 0)
        text->zeros_at = text->n_read;
    for (; c == '\0'; c = getc_unlocked(text->in))
        text->n_zeros++;
    if (n > 0 && is_of_number(line[n - 1]) && is_of_number(c))
        return facts_fail(at, error, "a byte of 0 within a number, expected the text of a log");
    if (c != EOF)
        ungetc(c, text->in);
    return 0;
}

/* Reads a line into `line`. 1: there is one; 0: the file ends. */
static int read_line(struct log_text *text, char *line, bool *is_cut, struct ifl_error *error)
{
    const struct place at = {text->path, ++text->n_read};
    size_t n = 0;
    int c = 0;
    while (n <= MAX_LINE_BYTES && (c = getc_unlocked(text->in)) != EOF && c != text->end) {
        if (c != '\0')
            line[n++] = (char)c;
        else if (skip_zeros(text, line, n, error) < 0)
            return error->code;
    }
    if (n > MAX_LINE_BYTES)
        return facts_fail(at, error, "a line of more than 1 MiB, expected a server's log");
    if (ferror(text->in) && errno == EISDIR)
        return ifl_fail_at(error, at.file, 0, 0, "cannot be read: Is a directory");
    if (ferror(text->in))
        return ifl_fail(error, IFL_E_IO, "%s: cannot be read: %s", at.file, strerror(errno));
    *is_cut = c == EOF;
    n -= n > 0 && line[n - 1] == '\r';
    line[n] = '\0';
    strip_colours(line);
    if (unwrap(line))
        *is_cut = false;
    return n > 0 || c != EOF;
}

bool log_text_is_record(const char *line)
{
    static const char *const levels[] = {"INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL"};
    static const char *const digits = "0123456789";
    if (*line == '(') {
        const char *end = strchr(line, ')');
        return end && strstr(line, " pid=") && strstr(line, " pid=") < end;
    }
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strncmp(line, levels[i], strlen(levels[i])) == 0 && line[strlen(levels[i])] &&
            strchr(" :", line[strlen(levels[i])]))
            return true;
    line += *line == '[';
    const size_t n = strspn(line, digits);
    return strncmp(line, "TensorRT-LLM", 12) == 0 ||
           ((n == 4 || n == 2) && strchr("-/", line[n]) && line[n] && strspn(line + n + 1, digits));
}

/* ---- all lines ---- */

int log_text_next(struct log_text *text, struct ifl_error *error)
{
    if (text->has_ahead == 0) {
        text->at = text->n_read + 1;
        return read_line(text, text->line, &text->is_cut, error);
    }
    if (text->has_ahead < 0)
        return 0;
    char *line = text->line;
    text->line = text->ahead;
    text->ahead = line;
    text->is_cut = text->ahead_is_cut;
    text->at = text->n_read;
    text->has_ahead = 0;
    return 1;
}

int log_text_peek(struct log_text *text, struct ifl_error *error)
{
    if (text->has_ahead != 0)
        return text->has_ahead > 0;
    const int code = read_line(text, text->ahead, &text->ahead_is_cut, error);
    text->has_ahead = code > 0 ? 1 : -1;
    return code;
}

bool log_text_join(struct log_text *text)
{
    const size_t n = strlen(text->line), n_more = strlen(text->ahead);
    if (n + n_more > MAX_LINE_BYTES)
        return false;
    memcpy(text->line + n, text->ahead, n_more + 1);
    text->is_cut = text->ahead_is_cut;
    text->has_ahead = 0;
    return true;
}

void log_text_rewind(struct log_text *text)
{
    rewind(text->in);
    text->n_read = text->at = 0;
    text->n_zeros = 0;
    text->has_ahead = 0;
}

/* A copy of what cannot be read twice. */
static FILE *copy_pipe(FILE *in)
{
    FILE *copy = tmpfile();
    char bytes[4096];
    for (size_t n; copy && (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
        fwrite(bytes, 1, n, copy);
    if (copy)
        rewind(copy);
    fclose(in);
    return copy;
}

/* The end of lines: a carriage return where the file begins with several lines that have no other.
 */
static int end_of_lines(FILE *in)
{
    int c, end = '\n';
    for (size_t n = 0; n < MAX_LINE_BYTES && (c = getc_unlocked(in)) != EOF; n++) {
        if (c == '\n') {
            end = '\n';
            break;
        }
        if (c == '\r')
            end = '\r';
    }
    rewind(in);
    return end;
}

int log_text_open(struct log_text *text, const char *path, struct ifl_error *error)
{
    *text = (struct log_text){.path = path, .in = fopen(path, "r")};
    if (text->in && fseek(text->in, 0, SEEK_SET) != 0)
        text->in = copy_pipe(text->in);
    if (!text->in)
        return ifl_fail_at(error, path, 0, 0, "cannot be opened: %s", strerror(errno));
    ifl_input_note(path);
    text->end = end_of_lines(text->in);
    text->line = malloc(MAX_LINE_BYTES + 2);
    text->ahead = malloc(MAX_LINE_BYTES + 2);
    return text->line && text->ahead ? 0 : ifl_fail_nomem(error);
}

void log_text_close(struct log_text *text)
{
    if (text->in)
        fclose(text->in);
    free(text->line);
    free(text->ahead);
}
