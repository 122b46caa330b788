#include "base/new_file.h"

#include <errno.h>
#include <string.h>

#include "inflight/inputs.h"

int new_file_open(struct new_file *file, const char *path, struct ifl_error *error)
{
    const size_t n = strlen(path);
    if (n >= sizeof file->path)
        return ifl_fail_at(error, path, 0, 0, "the path has more than %zu characters",
                           sizeof file->path - 1);
    memcpy(file->path, path, n + 1);
    file->device = strncmp(path, "/dev/", 5) == 0;
    snprintf(file->temporary, sizeof file->temporary, file->device ? "%s" : "%s.tmp", path);
    if (!file->device &&
        (ifl_output_check(path, error) || ifl_output_check(file->temporary, error)))
        return error->code;
    file->out = fopen(file->temporary, "w");
    if (!file->out)
        return ifl_fail_at(error, path, 0, 0, "cannot write: %s", strerror(errno));
    return 0;
}

int new_file_close(struct new_file *file, int code, struct ifl_error *error)
{
    const bool taken = !ferror(file->out);
    if ((fclose(file->out) != 0 || !taken) && code == 0)
        code = ifl_fail(error, IFL_E_IO, "%s: cannot write: %s", file->path, strerror(errno));
    if (code == 0 && !file->device)
        code = ifl_output_check(file->path, error); /* it may have been read since */
    if (code == 0 && !file->device && rename(file->temporary, file->path) < 0)
        code = ifl_fail(error, IFL_E_IO, "%s: cannot give the finished file its name: %s",
                        file->path, strerror(errno));
    if (code < 0 && !file->device)
        remove(file->temporary);
    return code;
}
