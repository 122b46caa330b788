#include "base/prometheus.h"

#include <string.h>

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
        at++;
    return at;
}

/* Behind the quote that ends a value, or `end`. `at` is behind the one that begins it. */
static const char *skip_quoted(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

/* The brace that closes the labels, or NULL. */
static const char *end_of_labels(const char *at, const char *end)
{
    while (at < end && *at != '}')
        at = *at == '"' ? skip_quoted(at + 1, end) : at + 1;
    return at < end ? at : NULL;
}

static bool read_line(const char *at, const char *end, struct sample *sample)
{
    *sample = (struct sample){.name = at};
    while (at < end && is_name(*at))
        at++;
    sample->n_name = (size_t)(at - sample->name);
    at = skip_blanks(at, end);
    if (sample->n_name == 0 || at == end)
        return false;
    if (*at == '{') {
        const char *close = end_of_labels(at + 1, end);
        if (!close)
            return false;
        sample->labels = at + 1;
        sample->n_labels = (size_t)(close - sample->labels);
        at = skip_blanks(close + 1, end);
    }
    sample->value = at;
    sample->n_value = (size_t)(skip_word(at, end) - at);
    return sample->n_value > 0;
}

static const char *end_of_line(const char *at, const char *end)
{
    while (at < end && *at != '\n')
        at++;
    return at;
}

bool sample_next(const char **at, const char *end, struct sample *sample)
{
    while (*at < end) {
        const char *feed = end_of_line(*at, end);
        const char *line = skip_blanks(*at, feed);
        *at = feed < end ? feed + 1 : end;
        if (line < feed && *line != '#' && read_line(line, feed, sample))
            return true;
    }
    return false;
}

bool sample_is(const struct sample *sample, const char *name)
{
    return strlen(name) == sample->n_name && memcmp(name, sample->name, sample->n_name) == 0;
}

static void unescape(const char *at, const char *end, char *text, size_t n_text)
{
    size_t n = 0;
    for (; at < end && n + 1 < n_text; at++) {
        const bool escaped = *at == '\\' && at + 1 < end;
        at += escaped;
        text[n++] = escaped && *at == 'n' ? '\n' : *at;
    }
    text[n] = '\0';
}

bool sample_label_next(const struct sample *sample, const char **at, struct sample_label *label)
{
    const char *end = sample->labels ? sample->labels + sample->n_labels : NULL;
    const char *name = *at ? *at : sample->labels;
    while (name && name < end && (*name == ',' || *name == ' '))
        name++;
    const char *equals = name && name < end ? memchr(name, '=', (size_t)(end - name)) : NULL;
    if (!equals || equals + 1 >= end || equals[1] != '"')
        return false;
    *at = skip_quoted(equals + 2, end);
    const char *close = *at > equals + 2 && (*at)[-1] == '"' ? *at - 1 : *at;
    unescape(name, equals, label->name, sizeof label->name);
    unescape(equals + 2, close, label->value, sizeof label->value);
    return true;
}
