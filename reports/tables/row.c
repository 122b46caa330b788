#include "tables/row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "inflight/assert.h"
#include "inflight/error.h"
#include "inflight/time.h"

/* "000,001,002,...,999,": three digits, and the comma that ends a field. */
#define UNITS(h) h "0," h "1," h "2," h "3," h "4," h "5," h "6," h "7," h "8," h "9,"
#define TENS(h)                                                                                    \
    UNITS(h "0")                                                                                   \
    UNITS(h "1")                                                                                   \
    UNITS(h "2")                                                                                   \
    UNITS(h "3")                                                                                   \
    UNITS(h "4")                                                                                   \
    UNITS(h "5")                                                                                   \
    UNITS(h "6")                                                                                   \
    UNITS(h "7")                                                                                   \
    UNITS(h "8")                                                                                   \
    UNITS(h "9")
static const char groups[] = TENS("0") TENS("1") TENS("2") TENS("3") TENS("4") TENS("5") TENS("6")
    TENS("7") TENS("8") TENS("9");

/* Each function writes digits and a comma and returns the comma's place. Four bytes are copied at a
 * time, so up to two bytes behind the comma are overwritten. */
static char *put_group(char *at, size_t value)
{
    memcpy(at, groups + 4 * value, 4);
    return at + 3;
}

static char *put_digits(char *at, uint64_t value)
{
    if (value >= 1000)
        return put_group(put_digits(at, value / 1000), value % 1000);
    const size_t n_zeros = (size_t)(value < 100) + (value < 10);
    memcpy(at, groups + 4 * value + n_zeros, 4);
    return at + 3 - n_zeros;
}

/* Most fields are one digit: counts of what is rare. */
IFL_HOT char *row_uint(char *at, uint64_t value)
{
    if (value < 10) {
        at[0] = (char)('0' + value);
        at[1] = ',';
        return at + 2;
    }
    return put_digits(at, value) + 1;
}

/* The magnitude of INT64_MIN fits only into an unsigned number. */
static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

IFL_HOT char *row_int(char *at, int64_t value)
{
    if (value < 0)
        *at++ = '-';
    return row_uint(at, magnitude(value));
}

IFL_HOT static char *put_fraction(char *at, uint32_t ns)
{
    const uint32_t us = ns / 1000;
    *at = '.';
    at = put_group(at + 1, us / 1000);
    at = put_group(at, us % 1000);
    return put_group(at, ns % 1000) + 1;
}

IFL_APART char *row_seconds(char *at, int64_t ns)
{
    static const char zero[] = "0.000000000,"; /* as most waits and stalls */
    if (ns == 0) {
        memcpy(at, zero, sizeof zero - 1);
        return at + sizeof zero - 1;
    }
    if (IFL_RARE(ns == IFL_NEVER)) {
        *at = ',';
        return at + 1;
    }
    if (ns < 0)
        *at++ = '-';
    const uint64_t of = magnitude(ns), s = of / IFL_NS_PER_S;
    if (s < 10) /* as most latencies */
        *at++ = (char)('0' + s);
    else
        at = put_digits(at, s);
    return put_fraction(at, (uint32_t)(of - s * IFL_NS_PER_S));
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
    ifl_assert(!strpbrk(word, ",\"\r\n"));
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
    ifl_assert(at[-1] == ',');
    at[-1] = '\n';
    return at;
}
