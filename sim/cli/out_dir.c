#include "cli/out_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH_BYTES = 512 };

static int make_with_parents(const char *dir, struct ifl_error *error)
{
    char path[MAX_PATH_BYTES];
    snprintf(path, sizeof path, "%s", dir);
    for (char *c = path + 1;; c++) {
        const char was = *c;
        if (was != '/' && was != '\0')
            continue;
        *c = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
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

int out_dir_make(const char *dir, struct ifl_error *error)
{
    if (!*dir)
        return ifl_fail(error, IFL_E_INPUT, "the output directory has an empty name");
    if (strlen(dir) >= MAX_PATH_BYTES)
        return ifl_fail(error, IFL_E_INPUT,
                        "the output directory has a name of %zu bytes, expected at most %d",
                        strlen(dir), MAX_PATH_BYTES - 1);
    const int rc = make_with_parents(dir, error);
    return rc < 0 ? rc : check(dir, error);
}
