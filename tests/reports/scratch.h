/* A folder of its own for each test, and the files in it. */
#ifndef INFLIGHT_TESTS_REPORTS_SCRATCH_H
#define INFLIGHT_TESTS_REPORTS_SCRATCH_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inflight/report.h"

struct scratch {
    char dir[64];
};

static inline struct scratch scratch_make(void)
{
    struct scratch scratch = {"/tmp/inflight-reports-XXXXXX"};
    cr_assert_not_null(mkdtemp(scratch.dir));
    return scratch;
}

/* One of a few static buffers: good for several names in a statement. */
static inline const char *scratch_path(const struct scratch *scratch, const char *name)
{
    static char path[8][384];
    static unsigned turn;
    char *here = path[turn++ % 8];
    snprintf(here, sizeof path[0], "%s/%s", scratch->dir, name);
    return here;
}

static inline void scratch_write(const struct scratch *scratch, const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(scratch, name), "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

/* The file's n bytes and a zero, which the caller frees; NULL if there is no such file. */
static inline char *scratch_read_bytes(const struct scratch *scratch, const char *name, size_t *n)
{
    FILE *file = fopen(scratch_path(scratch, name), "rb");
    if (!file)
        return NULL;
    char *text = NULL;
    FILE *to = open_memstream(&text, n);
    cr_assert_not_null(to);
    for (int c; (c = getc(file)) != EOF;)
        putc(c, to);
    fclose(file);
    cr_assert_eq(fclose(to), 0);
    return text;
}

/* The file's text, the same way. */
static inline char *scratch_read(const struct scratch *scratch, const char *name)
{
    size_t n;
    return scratch_read_bytes(scratch, name, &n);
}

static inline void scratch_expect(const struct scratch *scratch, const char *name,
                                  const char *expected)
{
    char *text = scratch_read(scratch, name);
    cr_assert_not_null(text, "%s is missing", name);
    cr_assert_str_eq(text, expected);
    free(text);
}

static inline size_t scratch_count(const struct scratch *scratch)
{
    size_t n = 0;
    DIR *dir = opendir(scratch->dir);
    cr_assert_not_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static inline void scratch_remove(const struct scratch *scratch)
{
    DIR *dir = opendir(scratch->dir);
    cr_assert_not_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        if (entry->d_name[0] != '.')
            unlink(scratch_path(scratch, entry->d_name));
    closedir(dir);
    rmdir(scratch->dir);
}

/* Joins the points' parts into a file of that name; a point without a file has a NULL part. */
static inline int scratch_join(const struct scratch *scratch, const char *name, bool timeline,
                               size_t n, const char *const *parts, struct ifl_error *error)
{
    struct ifl_joint *joint = ifl_joint_open(scratch_path(scratch, name), timeline, error);
    if (!joint)
        return error->code;
    for (size_t i = 0; i < n; i++)
        if (parts[i] && ifl_joint_append(joint, parts[i], error)) {
            ifl_joint_destroy(joint);
            return error->code;
        }
    return ifl_joint_close(joint, error);
}

#endif
