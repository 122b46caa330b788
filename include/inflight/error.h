/* Errors: a negative code and one line for the user. Notes: one line that is no error.
 *
 * Functions that can fail return 0 or a negative `enum ifl_code` and fill the caller's struct
 * ifl_error, which must not be NULL and need not be zeroed; after a success it is undefined. A
 * function without an error parameter, in which only memory can fail, returns 0 or IFL_E_NOMEM.
 * Libraries never print and never exit; only the command line does.
 *
 *     return ifl_fail_at(error, path, line, 0, "rate_rps is -4, expected a number above 0");
 */
#ifndef INFLIGHT_ERROR_H
#define INFLIGHT_ERROR_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "inflight/assert.h"

enum ifl_code {
    IFL_OK = 0,
    IFL_E_INPUT = -1,       /* the user's input is wrong: exit code 2 */
    IFL_E_NOMEM = -2,       /* out of memory */
    IFL_E_IO = -3,          /* reading or writing failed: disk full, broken pipe */
    IFL_E_POLICY = -4,      /* a policy broke the contract; the text names it */
    IFL_E_STALLED = -5,     /* requests are left, and none of them will ever finish */
    IFL_E_DEVICE = -6,      /* the engine or its device failed */
    IFL_E_INTERRUPTED = -7, /* SIGINT or SIGTERM */
};

struct ifl_error {
    int code;
    int line, column; /* 1-based, 0 if unknown */
    char file[256];   /* path, empty if the error is in no file */
    char text[768];   /* what was found, what was expected */
};

#if defined(__GNUC__)
#define IFL_PRINTF(format_index, first_index)                                                      \
    __attribute__((format(printf, format_index, first_index)))
#else
#define IFL_PRINTF(format_index, first_index)
#endif

/* IFL_COLD, before a function: branches that call it are placed apart from the code that runs.
 * IFL_APART, before the rare path of a short function, or before code that several paths share: it
 * is called, not inlined. The short function then saves no registers for it, and the event loop
 * stays within the instruction cache (32 KiB on most processors; a step touches about as much).
 * IFL_HOT, before the definition of a function that each step or each request runs: such functions
 * are placed together and inlined up to a larger size (a call costs ten instructions and more). If
 * a header declares the function without it, `inline` still leaves an external definition (C17,
 * 6.7.4).
 * IFL_RARE, around a condition: its branch is placed behind the rest of the function and kept
 * small, so that features that are off take little room in the instruction cache. The probability
 * is that of false: at less than 1 the compiler puts the branch of an inner loop before the code of
 * outer loops (2 % of the time of a run). */
#if defined(__GNUC__)
#define IFL_COLD __attribute__((cold))
#define IFL_APART __attribute__((noinline))
#ifdef __clang__ /* it warns where `inline` stands twice, or calls a static function */
#define IFL_HOT __attribute__((hot))
#else
#define IFL_HOT inline __attribute__((hot))
#endif
#define IFL_RARE(condition) __builtin_expect_with_probability(!!(condition), 0, 1.0)
#else
#define IFL_COLD
#define IFL_APART
#define IFL_HOT
#define IFL_RARE(condition) (condition)
#endif

/* Fills `error` and returns `code`, a negative enum ifl_code. The location stays empty. The text,
 * one line without a line feed, is cut to its array. The arguments must not point into *error,
 * which is cleared first. */
IFL_COLD IFL_PRINTF(3, 4) static inline int ifl_fail(struct ifl_error *error, int code,
                                                     const char *format, ...)
{
    va_list args;
    *error = (struct ifl_error){.code = code};
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return code;
}

/* Wrong input at a place in a file; returns IFL_E_INPUT. `line` and `column` may be 0. `file` is
 * not NULL, is copied, and must not point into *error; for the rest see ifl_fail. */
IFL_COLD IFL_PRINTF(5, 6) static inline int ifl_fail_at(struct ifl_error *error, const char *file,
                                                        int line, int column, const char *format,
                                                        ...)
{
    va_list args;
    *error = (struct ifl_error){.code = IFL_E_INPUT, .line = line, .column = column};
    snprintf(error->file, sizeof error->file, "%s", file);
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return IFL_E_INPUT;
}

/* Fills `error` without a location; returns IFL_E_NOMEM. */
IFL_COLD static inline int ifl_fail_nomem(struct ifl_error *error)
{
    ifl_fail(error, IFL_E_NOMEM, "out of memory");
    return IFL_E_NOMEM;
}

/* Sets the error's file if it has none. Memory may run out in any function of a reader, and most of
 * them do not know the path. Returns error->code. */
static inline int ifl_blame_file(struct ifl_error *error, const char *file)
{
    if (!error->file[0])
        snprintf(error->file, sizeof error->file, "%.255s", file);
    return error->code;
}

/* Takes a note: one line for the user (rows skipped, stamps sorted, lengths estimated ...) without
 * a line feed. It is called in the thread of the function that notes; `text` is valid until it
 * returns. */
typedef void ifl_note_fn(void *context, const char *text);
struct ifl_notes {
    ifl_note_fn *say; /* NULL: silent */
    void *context;
};

/* Aborts with file and line if an internal condition of inflight does not hold, in every build. For
 * conditions that are cheap compared with the work that they protect; ifl_assert (assert.h) is for
 * all others. */
#define ifl_require(condition)                                                                     \
    ((condition) ? (void)0                                                                         \
                 : (fprintf(stderr, "inflight: %s:%d: broken invariant: %s\n", __FILE__, __LINE__, \
                            #condition),                                                           \
                    abort()))

#endif
