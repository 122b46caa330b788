#include "base/outputs.h"

#include <unistd.h>

#include "inflight/inputs.h"
#include "inflight/report.h"

static const char *const ends[] = {"", ".tmp"};
enum { N_ENDS = sizeof ends / sizeof *ends };

static void path_of(const char *dir, const char *name, int end, char path[IFL_PATH_BYTES])
{
    snprintf(path, IFL_PATH_BYTES, "%s/%s%s", dir, name, ends[end]);
}

bool outputs_exist(const char *dir, const char *const *names)
{
    char path[IFL_PATH_BYTES];
    for (; *names; names++)
        for (int end = 0; end < N_ENDS; end++) {
            path_of(dir, *names, end, path);
            if (access(path, F_OK) == 0)
                return true;
        }
    return false;
}

int outputs_check(const char *dir, const char *const *names, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    for (; *names; names++)
        for (int end = 0; end < N_ENDS; end++) {
            path_of(dir, *names, end, path);
            if (ifl_output_check(path, error) < 0)
                return error->code;
        }
    return 0;
}
