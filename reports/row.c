#include "row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "inflight/time.h"

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static const uint64_t power_of_ten[] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
    10000000000000000000u,
};

static char *put_digits(char *at, uint64_t value)
{
    size_t n = 2;
    if (value < 10) { /* as most counts, and the seconds of most latencies */
        *at = (char)('0' + value);
        return at + 1;
    }
    while (n < 20 && value >= power_of_ten[n])
        n++;
    char *end = at + n, *to = end;
    while (value >= 100) {
        to -= 2;
        memcpy(to, pairs + 2 * (size_t)(value % 100), 2);
        value /= 100;
    }
    if (value >= 10)
        memcpy(to - 2, pairs + 2 * value, 2);
    else
        to[-1] = (char)('0' + value);
    return end;
}

static void put_four_digits(char *at, uint32_t value)
{
    memcpy(at, pairs + 2 * (size_t)(value / 100), 2);
    memcpy(at + 2, pairs + 2 * (size_t)(value % 100), 2);
}

/* In two halves, which the processor works on at the same time. */
static char *put_nine_digits(char *at, uint32_t value)
{
    const uint32_t low = value % 100000;
    put_four_digits(at, value / 100000);
    put_four_digits(at + 4, low / 10);
    at[8] = (char)('0' + low % 10);
    return at + 9;
}

char *row_uint(char *at, uint64_t value)
{
    at = put_digits(at, value);
    *at++ = ',';
    return at;
}

/* INT64_MIN has a magnitude too, but only as an unsigned number. */
static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

char *row_int(char *at, int64_t value)
{
    if (value < 0)
        *at++ = '-';
    return row_uint(at, magnitude(value));
}

char *row_seconds(char *at, int64_t ns)
{
    if (ns != IFL_NEVER) {
        const uint64_t of = magnitude(ns);
        if (ns < 0)
            *at++ = '-';
        at = put_digits(at, of / IFL_NS_PER_S);
        *at++ = '.';
        at = put_nine_digits(at, (uint32_t)(of % IFL_NS_PER_S));
    }
    *at++ = ',';
    return at;
}

char *row_real(char *at, double value)
{
    if (!isnan(value))
        at += snprintf(at, ROW_REAL_BYTES, "%.9g", value);
    *at++ = ',';
    return at;
}

char *row_word(char *at, const char *word)
{
    at = stpcpy(at, word);
    *at++ = ',';
    return at;
}

size_t row_text_bytes(const char *text)
{
    return 2 * strlen(text) + sizeof "\"\",";
}

char *row_text(char *at, const char *text)
{
    if (!strpbrk(text, ",\"\r\n"))
        return row_word(at, text);
    *at++ = '"';
    for (; *text; text++) {
        if (*text == '"')
            *at++ = '"';
        *at++ = *text;
    }
    *at++ = '"';
    *at++ = ',';
    return at;
}

char *row_end(char *at)
{
    at[-1] = '\n';
    return at;
}
