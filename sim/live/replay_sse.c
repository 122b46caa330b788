#include "live/replay_sse.h"

#include <string.h>

void replay_sse_reset(struct replay_sse *sse)
{
    replay_text_free(&sse->line);
    replay_text_free(&sse->data);
    *sse = (struct replay_sse){
        .most_bytes = sse->most_bytes, .event = sse->event, .context = sse->context};
}

/* The blank line behind an event's data. */
static enum replay_sse_end dispatch(struct replay_sse *sse)
{
    const bool has = sse->has_data;
    sse->has_data = false;
    const size_t n = sse->data.n;
    sse->data.n = 0;
    return !has || sse->event(sse->context, sse->data.of, n) ? REPLAY_SSE_GOES_ON
                                                             : REPLAY_SSE_STOPPED;
}

/* The value of a "data" line, NULL for any other line. */
static const char *value_of(const char *line, size_t n, size_t *n_value)
{
    static const char name[] = "data";
    const size_t n_name = sizeof name - 1;
    if (n < n_name || memcmp(line, name, n_name) != 0 || (n > n_name && line[n_name] != ':'))
        return NULL;
    size_t at = n > n_name ? n_name + 1 : n;
    at += at < n && line[at] == ' ';
    *n_value = n - at;
    return line + at;
}

static enum replay_sse_end take_line(struct replay_sse *sse, const char *line, size_t n)
{
    size_t n_value;
    if (n == 0)
        return dispatch(sse);
    const char *value = value_of(line, n, &n_value);
    if (!value)
        return REPLAY_SSE_GOES_ON;
    if (sse->data.n + n_value >= sse->most_bytes)
        return REPLAY_SSE_LONG_EVENT;
    if (sse->has_data && replay_text_add(&sse->data, "\n", 1) < 0)
        return REPLAY_SSE_NO_MEMORY;
    sse->has_data = true;
    return replay_text_add(&sse->data, value, n_value) < 0 ? REPLAY_SSE_NO_MEMORY
                                                           : REPLAY_SSE_GOES_ON;
}

/* A line that ends in these bytes: of those before them, what they begin with is kept. */
static enum replay_sse_end end_line(struct replay_sse *sse, const char *bytes, size_t n)
{
    if (sse->line.n + n > sse->most_bytes)
        return REPLAY_SSE_LONG_LINE;
    if (sse->line.n == 0)
        return take_line(sse, bytes, n);
    if (replay_text_add(&sse->line, bytes, n) < 0)
        return REPLAY_SSE_NO_MEMORY;
    const size_t n_line = sse->line.n;
    sse->line.n = 0;
    return take_line(sse, sse->line.of, n_line);
}

static size_t length_of_line(const char *bytes, size_t n)
{
    const char *feed = memchr(bytes, '\n', n);
    const size_t n_line = feed ? (size_t)(feed - bytes) : n;
    const char *cr = memchr(bytes, '\r', n_line);
    return cr ? (size_t)(cr - bytes) : n_line;
}

enum replay_sse_end replay_sse_take(struct replay_sse *sse, const char *bytes, size_t n)
{
    while (n > 0) {
        if (sse->after_cr && *bytes == '\n') {
            sse->after_cr = false;
            bytes++;
            n--;
            continue;
        }
        sse->after_cr = false;
        const size_t n_line = length_of_line(bytes, n);
        if (n_line == n) {
            if (sse->line.n + n > sse->most_bytes)
                return REPLAY_SSE_LONG_LINE;
            return replay_text_add(&sse->line, bytes, n) < 0 ? REPLAY_SSE_NO_MEMORY
                                                             : REPLAY_SSE_GOES_ON;
        }
        const enum replay_sse_end end = end_line(sse, bytes, n_line);
        if (end != REPLAY_SSE_GOES_ON)
            return end;
        sse->after_cr = bytes[n_line] == '\r';
        bytes += n_line + 1;
        n -= n_line + 1;
    }
    return REPLAY_SSE_GOES_ON;
}
