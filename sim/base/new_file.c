#include "base/new_file.h"

#include <errno.h>
#include <string.h>

#include "inflight/inputs.h"

int new_file_open(struct new_file *file, const char *path, struct ifl_error *error)
{
    snprintf(file->path, sizeof file->path, "%s", path);
    if (ifl_output_find(path, file->target, sizeof file->target, &file->in_place, error) < 0)
        return error->code;
    snprintf(file->temporary, sizeof file->temporary, file->in_place ? "%s" : "%s.tmp",
             file->target);
    if (!file->in_place && ifl_output_check(file->temporary, error) < 0)
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
    if (file->in_place)
        return code;
    if (code == 0)
        code = ifl_output_check(file->target, error); /* it may have been read since */
    if (code == 0 && rename(file->temporary, file->target) < 0)
        code = ifl_fail(error, IFL_E_IO, "%s: cannot give the finished file its name: %s",
                        file->path, strerror(errno));
    if (code < 0)
        remove(file->temporary);
    return code;
}
