#include "json_file.h"

#include "inflight/regular_file.h"

json_t *json_file_read(const char *path, int64_t max_bytes, struct ifl_error *error)
{
    json_error_t found;
    const int fd = ifl_open_regular(path, max_bytes, "a JSON object", NULL, error);
    if (fd < 0)
        return NULL;
    json_t *root = json_loadfd(fd, JSON_REJECT_DUPLICATES, &found);
    close(fd);
    if (!root)
        ifl_fail_at(error, path, found.line > 0 ? found.line : 0, found.line > 0 ? found.column : 0,
                    "%.160s, expected a JSON object", found.text);
    return root;
}
