/* Common helpers of these tests: fixtures, texts as files, and a notebook of notes. */
#ifndef TESTS_TRACES_READING_H
#define TESTS_TRACES_READING_H

#include <criterion/criterion.h>
#include <string.h>

#include "traces.h"

/* Tests run in the root of the source tree. */
#define FIXTURE(name) "tests/traces/fixtures/" name
#define SHIPPED(name) "traces/data/" name

struct notebook {
    int n;
    char last[512];
};

static inline void note_down(void *context, const char *text)
{
    struct notebook *notebook = context;
    notebook->n++;
    snprintf(notebook->last, sizeof notebook->last, "%s", text);
}

static inline struct ifl_notes notes_into(struct notebook *notebook)
{
    return (struct ifl_notes){note_down, notebook};
}

static inline int read_bytes(const char *text, size_t n, const char *format,
                             struct ifl_trace *trace, struct ifl_error *error)
{
    struct trace_input input;
    *trace = (struct ifl_trace){0};
    int rc = trace_input_open_memory(&input, "text.csv", text, n, error);
    if (rc == 0)
        rc = trace_read_input(&input, format, NULL, trace, error);
    trace_input_close(&input);
    return rc;
}

static inline int read_text(const char *text, const char *format, struct ifl_trace *trace,
                            struct ifl_error *error)
{
    return read_bytes(text, strlen(text), format, trace, error);
}

/* Reads a trace that must be valid. */
static inline struct ifl_trace must_read(const char *text)
{
    struct ifl_trace trace;
    struct ifl_error error;
    const int rc = read_text(text, "auto", &trace, &error);
    cr_assert_eq(rc, 0, "%s", error.text);
    return trace;
}

static inline struct ifl_trace must_load(const char *path, struct notebook *notebook)
{
    struct ifl_trace trace;
    struct ifl_error error;
    const struct ifl_notes notes = notes_into(notebook);
    const int rc =
        ifl_trace_read(&(struct ifl_trace_file){path, "auto", 0}, &notes, &trace, &error);
    cr_assert_eq(rc, 0, "%s: %s", error.file, error.text);
    return trace;
}

#define expect_column(column, ...)                                                                 \
    do {                                                                                           \
        const int64_t expected_[] = {__VA_ARGS__};                                                 \
        for (size_t i_ = 0; i_ < sizeof expected_ / sizeof *expected_; i_++)                       \
            cr_expect_eq((int64_t)(column)[i_], expected_[i_], #column "[%zu] is %lld, not %lld",  \
                         i_, (long long)(column)[i_], (long long)expected_[i_]);                   \
    } while (0)

#endif
