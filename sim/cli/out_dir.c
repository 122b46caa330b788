#include "cli/out_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_with_parents(struct out_dir *out, const char *dir, struct ifl_error *error)
{
    for (char *c = out->path + 1;; c++) {
        const char was = *c;
        if (was != '/' && was != '\0')
            continue;
        *c = '\0';
        const bool made = mkdir(out->path, 0777) == 0;
        out->made[c - out->path] = made;
        if (!made && errno != EEXIST)
            return ifl_fail_at(error, dir, 0, 0, "cannot make the output directory: %s",
                               strerror(errno));
        *c = was;
        if (was == '\0')
            return 0;
    }
}

static int check(const char *dir, struct ifl_error *error)
{
    struct stat status;
    if (stat(dir, &status) < 0)
        return ifl_fail_at(error, dir, 0, 0, "cannot use the output directory: %s",
                           strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return ifl_fail_at(error, dir, 0, 0, "is a file, expected an output directory");
    if (access(dir, W_OK | X_OK) < 0)
        return ifl_fail_at(error, dir, 0, 0, "cannot write to the output directory: %s",
                           strerror(errno));
    return 0;
}

void out_dir_tidy(struct out_dir *out)
{
    for (size_t n = OUT_DIR_BYTES; n-- > 0;) {
        if (!out->made[n])
            continue;
        out->path[n] = '\0';
        rmdir(out->path); /* fails where it holds anything, which is as it should be */
    }
    *out = (struct out_dir){0};
}

int out_dir_make(struct out_dir *out, const char *dir, struct ifl_error *error)
{
    *out = (struct out_dir){0};
    if (!*dir)
        return ifl_fail(error, IFL_E_INPUT, "the output directory has an empty name");
    if (strlen(dir) >= OUT_DIR_BYTES)
        return ifl_fail(error, IFL_E_INPUT,
                        "the output directory has a name of %zu bytes, expected at most %d",
                        strlen(dir), OUT_DIR_BYTES - 1);
    snprintf(out->path, sizeof out->path, "%s", dir);
    int rc = make_with_parents(out, dir, error);
    if (rc == 0)
        rc = check(dir, error);
    if (rc < 0)
        out_dir_tidy(out);
    return rc;
}
