/* Joins the points' files of a report in order: CSV under one header, or one JSON array. */
#include <stdio.h>

#include "inflight/report.h"
#include "tables/whole_file.h"

#define CHUNK_BYTES ((size_t)1 << 18)

struct ifl_joint {
    struct whole_file file;
    bool timeline;
    size_t n_parts;
};

struct ifl_joint *ifl_joint_open(const char *path, bool timeline, struct ifl_error *error)
{
    struct ifl_joint *joint = calloc(1, sizeof *joint);
    if (!joint) {
        ifl_fail_nomem(error);
        return NULL;
    }
    joint->timeline = timeline;
    if (whole_open(&joint->file, path, error) == IFL_OK)
        return joint;
    free(joint);
    return NULL;
}

void ifl_joint_destroy(struct ifl_joint *joint)
{
    if (joint)
        whole_discard(&joint->file);
    free(joint);
}

/* ---- a part ---- */

/* All points have the same columns, so the joined file needs one header. */
static void skip_header(FILE *part)
{
    for (int c = getc(part); c != EOF && c != '\n'; c = getc(part))
        continue;
}

static int append_rest(struct whole_file *whole, FILE *part, const char *path,
                       struct ifl_error *error)
{
    size_t n = 1;
    while (n > 0) {
        char *at = whole_room(whole, CHUNK_BYTES, error);
        if (!at)
            return error->code;
        n = fread(at, 1, CHUNK_BYTES, part);
        whole_commit(whole, at + n);
    }
    return ferror(part) ? whole_fail_on(path, "read", error) : IFL_OK;
}

static int append_open(struct ifl_joint *joint, FILE *part, const char *path,
                       struct ifl_error *error)
{
    const bool first = joint->n_parts++ == 0;
    if (joint->timeline && whole_write(&joint->file, first ? "[\n" : ",\n", error))
        return error->code;
    if (!joint->timeline && !first)
        skip_header(part);
    return append_rest(&joint->file, part, path, error);
}

int ifl_joint_append(struct ifl_joint *joint, const char *path, struct ifl_error *error)
{
    FILE *part = fopen(path, "rb");
    if (!part)
        return whole_fail_on(path, "open", error);
    const int code = append_open(joint, part, path, error);
    fclose(part);
    return code;
}

/* ---- the end ---- */

int ifl_joint_close(struct ifl_joint *joint, struct ifl_error *error)
{
    int code = joint->timeline ? whole_write(&joint->file, "\n]\n", error) : IFL_OK;
    code = whole_finish(&joint->file, code, error);
    ifl_joint_destroy(joint);
    return code;
}
