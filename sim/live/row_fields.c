#include "live/row_fields.h"

#include <stdbool.h>
#include <string.h>

#include "inflight/time.h"

char *row_put_digits(char *at, uint64_t value, int least)
{
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || n < least);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

char *row_put_whole(char *at, int64_t value)
{
    if (value < 0)
        *at++ = '-';
    at = row_put_digits(at, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
    *at++ = ',';
    return at;
}

char *row_put_count(char *at, int64_t value)
{
    if (value >= 0)
        return row_put_whole(at, value);
    *at++ = ',';
    return at;
}

char *row_put_time(char *at, int64_t ns)
{
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    if (ns < 0)
        *at++ = '-';
    at = row_put_digits(at, size / IFL_NS_PER_S, 1);
    *at++ = '.';
    return row_put_digits(at, size % IFL_NS_PER_S, 9);
}

char *row_put_seconds(char *at, int64_t ns)
{
    if (ns != IFL_NEVER)
        at = row_put_time(at, ns);
    *at++ = ',';
    return at;
}

char *row_put_text(char *at, const char *text)
{
    const bool quotes = strpbrk(text, ",\"\n\r") != NULL;
    if (quotes)
        *at++ = '"';
    for (; *text; text++) {
        if (*text == '"')
            *at++ = '"';
        *at++ = *text;
    }
    if (quotes)
        *at++ = '"';
    *at++ = ',';
    return at;
}

char *row_put_end(char *at)
{
    at[-1] = '\n';
    return at;
}
