/* The cache of traces: a file is read once, and each call gets its own copy. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "run/trace_shelf.h"

/* The third record has no output: reading the file gives a note. */
static const char three_rows[] = "num_prefill_tokens,num_decode_tokens\n10,1\n20,2\n30,0\n";

static void write_file(char path[32], const char *text)
{
    snprintf(path, 32, "/tmp/inflight-shelf-XXXXXX");
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    FILE *out = fdopen(fd, "w");
    fputs(text, out);
    fclose(out);
}

static void count_note(void *context, const char *text)
{
    (void)text;
    ++*(int *)context;
}

static int take(struct trace_shelf *shelf, const char *path, struct ifl_trace *trace)
{
    static const struct ifl_trace_window all;
    struct ifl_error error;
    return trace_shelf_cut(shelf, &(struct ifl_trace_file){path, "auto", 0}, &all, NULL, trace,
                           &error);
}

Test(trace_shelf, a_file_that_is_gone_is_still_there)
{
    struct trace_shelf shelf;
    struct ifl_trace trace;
    char path[32];
    int n_notes = 0;
    write_file(path, three_rows);
    trace_shelf_init(&shelf, (struct ifl_notes){count_note, &n_notes});
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(take(&shelf, path, &trace), 0);
        cr_expect_eq(trace.n, 2);
        cr_expect_eq(trace.n_prompt[1], 20);
        trace.n_prompt[1] = 99;
        ifl_trace_free(&trace);
        unlink(path);
    }
    cr_expect_eq(n_notes, 1);
    trace_shelf_clear(&shelf);
    cr_expect_lt(take(&shelf, path, &trace), 0);
    trace_shelf_finish(&shelf);
}

Test(trace_shelf, a_shelf_that_clears_keeps_nothing)
{
    struct trace_shelf shelf;
    struct ifl_trace trace;
    char path[32];
    write_file(path, three_rows);
    trace_shelf_init(&shelf, (struct ifl_notes){0});
    trace_shelf_clear(&shelf);
    cr_assert_eq(take(&shelf, path, &trace), 0);
    ifl_trace_free(&trace);
    unlink(path);
    cr_expect_lt(take(&shelf, path, &trace), 0);
    trace_shelf_finish(&shelf);
}

/* Two windows of one file; an error in one call does not affect the next. */
Test(trace_shelf, windows_and_errors_are_the_takers)
{
    const struct ifl_trace_window last = {.skip = 1}, none = {.skip = 9};
    struct trace_shelf shelf;
    struct ifl_trace trace;
    struct ifl_error error;
    char path[32];
    write_file(path, three_rows);
    trace_shelf_init(&shelf, (struct ifl_notes){0});
    cr_expect_lt(trace_shelf_cut(&shelf, &(struct ifl_trace_file){path, "no-such", 0}, &last, NULL,
                                 &trace, &error),
                 0);
    cr_expect_lt(trace_shelf_cut(&shelf, &(struct ifl_trace_file){path, "auto", 0}, &none, NULL,
                                 &trace, &error),
                 0);
    cr_assert_eq(trace_shelf_cut(&shelf, &(struct ifl_trace_file){path, "auto", 0}, &last, NULL,
                                 &trace, &error),
                 0);
    cr_expect_eq(trace.n, 1);
    cr_expect_eq(trace.request_id[0], 1);
    ifl_trace_free(&trace);
    trace_shelf_finish(&shelf);
    unlink(path);
}

struct taker {
    struct trace_shelf *shelf;
    const char *path;
    int code;
    int32_t n_prompt;
};

static void *take_many(void *context)
{
    struct taker *taker = context;
    for (int i = 0; i < 50 && taker->code == 0; i++) {
        struct ifl_trace trace;
        taker->code = take(taker->shelf, taker->path, &trace);
        taker->n_prompt += taker->code == 0 ? trace.n_prompt[0] : 0;
        ifl_trace_free(&trace);
    }
    return NULL;
}

Test(trace_shelf, threads_share_one_reading)
{
    enum { N = 4 };
    struct trace_shelf shelf;
    struct taker takers[N];
    pthread_t threads[N];
    char path[32];
    int n_notes = 0;
    write_file(path, three_rows);
    trace_shelf_init(&shelf, (struct ifl_notes){count_note, &n_notes});
    for (int i = 0; i < N; i++) {
        takers[i] = (struct taker){&shelf, path, 0, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, take_many, &takers[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(takers[i].code, 0);
        cr_expect_eq(takers[i].n_prompt, 50 * 10);
    }
    cr_expect_eq(n_notes, 1);
    trace_shelf_finish(&shelf);
    unlink(path);
}

/* The last taker of all rows gets them without a copy, one of some rows as ever. */
Test(trace_shelf, the_last_taker_gets_the_rows_themselves)
{
    const struct ifl_trace_window last = {.skip = 1};
    struct trace_shelf shelf;
    struct ifl_trace trace;
    struct ifl_error error;
    char path[32];
    write_file(path, "num_prefill_tokens,num_decode_tokens\n10,1\n20,2\n");
    trace_shelf_init(&shelf, (struct ifl_notes){0});
    cr_assert_eq(take(&shelf, path, &trace), 0);
    cr_expect_not_null(trace.request_id, "a copy says where its rows come from");
    ifl_trace_free(&trace);
    trace_shelf_clear(&shelf);
    cr_assert_eq(take(&shelf, path, &trace), 0);
    cr_expect_null(trace.request_id, "the trace as it was read");
    cr_expect_eq(trace.n, 2);
    ifl_trace_free(&trace);
    cr_assert_eq(trace_shelf_cut(&shelf, &(struct ifl_trace_file){path, "auto", 0}, &last, NULL,
                                 &trace, &error),
                 0);
    cr_expect_eq(trace.request_id[0], 1);
    ifl_trace_free(&trace);
    trace_shelf_finish(&shelf);
    unlink(path);
}
