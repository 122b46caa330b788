/* Tests that break a precondition once: the call must name it and abort (inflight/assert.h).
 *
 *     VIOLATES(ranks, own, ranks_own, "begun")
 *     {
 *         ... a call that breaks it ...
 *     }
 *
 * names the function that checks, and a part of the condition that it prints. */
#ifndef TESTS_PRECONDITIONS_VIOLATES_H
#define TESTS_PRECONDITIONS_VIOLATES_H

#include <criterion/criterion.h>

#include "inflight/error.h"

/* Runs `breach` in a child process. It must end by SIGABRT, behind one line on standard error that
 * says "FUNCTION expects: " and then has `condition` in it. */
void expect_abort(void (*breach)(void), const char *function, const char *condition);

#define VIOLATES(suite, label, function, condition)                                                \
    static void breach_##suite##_##label(void);                                                    \
    Test(suite, label)                                                                             \
    {                                                                                              \
        expect_abort(breach_##suite##_##label, #function, condition);                              \
    }                                                                                              \
    static void breach_##suite##_##label(void)

#endif
