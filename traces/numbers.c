/* Decimal text to integers. Stamps never go through a double unless they carry an exponent. */
#include "traces.h"

#include <math.h>
#include <stdlib.h>

enum { SAFE_DIGITS = 18 }; /* any 18 digits fit into 64 bits */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

IFL_HOT enum trace_number trace_whole(const char *text, size_t n, int64_t *value)
{
    ifl_assert(text[n] == '\0' || text[n] == ' ');
    const bool negative = text[0] == '-';
    const char *at = text + (negative || text[0] == '+');
    const char *const first = at;
    uint64_t whole = 0;
    for (; is_digit(*at); at++)
        whole = 10 * whole + (uint64_t)(*at - '0');
    if (IFL_RARE(at == first || at != text + n))
        return TRACE_NOT_A_NUMBER;
    if (IFL_RARE(at - first > SAFE_DIGITS))
        whole = strtoull(first, NULL, 10); /* the largest number if it does not fit */
    if (IFL_RARE(whole > INT64_MAX))
        return TRACE_OUT_OF_RANGE;
    *value = negative ? -(int64_t)whole : (int64_t)whole;
    return TRACE_NUMBER;
}

size_t trace_fraction(const char *digits, int64_t *ns)
{
    size_t n = 0;
    int64_t unit_ns = IFL_NS_PER_S / 10;
    for (*ns = 0; is_digit(digits[n]); n++, unit_ns /= 10) {
        if (n < 9)
            *ns += unit_ns * (digits[n] - '0');
        else if (n == 9)
            *ns += digits[n] >= '5';
    }
    return n;
}

static enum trace_number through_double(const char *text, size_t n, int64_t *ns)
{
    char *end;
    const double s = strtod(text, &end);
    if (end != text + n || isnan(s))
        return TRACE_NOT_A_NUMBER;
    *ns = ifl_ns_from_s(s);
    return *ns == IFL_NEVER || *ns == -IFL_NEVER ? TRACE_OUT_OF_RANGE : TRACE_NUMBER;
}

enum trace_number trace_seconds(const char *text, size_t n, int64_t *ns)
{
    ifl_assert(text[n] == '\0' || text[n] == ' ');
    const bool negative = text[0] == '-';
    const char *at = text + (negative || text[0] == '+');
    const char *const first = at;
    int64_t s = 0, fraction_ns = 0;
    for (; is_digit(*at); at++)
        s = s >= TRACE_MAX_S ? s : 10 * s + (*at - '0');
    size_t n_digits = (size_t)(at - first);
    if (*at == '.') {
        const size_t n_fraction = trace_fraction(at + 1, &fraction_ns);
        at += 1 + n_fraction;
        n_digits += n_fraction;
    }
    if (n_digits == 0)
        return TRACE_NOT_A_NUMBER;
    if (*at == 'e' || *at == 'E')
        return through_double(text, n, ns);
    if (at != text + n)
        return TRACE_NOT_A_NUMBER;
    if (s >= TRACE_MAX_S)
        return TRACE_OUT_OF_RANGE;
    *ns = (s * IFL_NS_PER_S + fraction_ns) * (negative ? -1 : 1);
    return TRACE_NUMBER;
}
