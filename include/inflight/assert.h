/* Preconditions of functions, checked at their beginning.
 *
 * The checks are for debugging. They are compiled if IFL_ASSERTS is 1, which the build sets with a
 * sanitizer or without optimisation (option `asserts`); otherwise they generate no code. They do
 * not replace errors (error.h): every build reports a wrong file, key or policy to the user. */
#ifndef INFLIGHT_ASSERT_H
#define INFLIGHT_ASSERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef IFL_ASSERTS
#define IFL_ASSERTS 0
#endif

#if IFL_ASSERTS
#include <stdio.h>
#include <stdlib.h>

/* For ifl_assert. Prints one line to stderr and aborts. */
#if defined(__GNUC__)
__attribute__((noreturn, cold))
#endif
static inline void
ifl_assert_fail(const char *file, int line, const char *function, const char *condition)
{
    fprintf(stderr, "inflight: %s:%d: %s expects: %s\n", file, line, function, condition);
    abort();
}

/* Names the file, the line, the function and the condition, and aborts, if the condition does not
 * hold. The condition must have no side effect. */
#define ifl_assert(condition)                                                                      \
    ((condition) ? (void)0 : ifl_assert_fail(__FILE__, __LINE__, __func__, #condition))
#else
/* Not evaluated; what it reads counts as used. */
#define ifl_assert(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

/* Before a function that only conditions use: no warning if they are off. */
#define IFL_FOR_ASSERTS __attribute__((unused))

/* ---- conditions over arrays ---- */

/* True if no value is below the one before it: equal neighbours are in order, and so are n = 0, for
 * which `value` may be NULL, and n = 1. */
static inline bool ifl_ascends(const int64_t *value, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (value[i - 1] > value[i])
            return false;
    return true;
}

/* The same; NaN is in order beside any value. */
static inline bool ifl_ascends_real(const double *value, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (value[i - 1] > value[i])
            return false;
    return true;
}

#endif
