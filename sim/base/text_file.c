#include "base/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/inputs.h"

int text_file_read(const char *path, size_t most_mib, const char *expected, char **text,
                   size_t *n_bytes, struct ifl_error *error)
{
    const size_t most = most_mib << 20;
    FILE *in = fopen(path, "r");
    *text = NULL;
    if (!in)
        return ifl_fail_at(error, path, 0, 0, "cannot be opened: %s", strerror(errno));
    ifl_input_note(path);
    char *read = malloc(most + 2);
    errno = 0;
    *n_bytes = read ? fread(read, 1, most + 1, in) : 0;
    int code = 0;
    if (!read) {
        ifl_fail_nomem(error);
        code = ifl_blame_file(error, path);
    } else if (ferror(in)) {
        code = ifl_fail_at(error, path, 0, 0, "cannot be read: %s", strerror(errno));
    } else if (*n_bytes > most) {
        code =
            ifl_fail_at(error, path, 0, 0, "larger than %zu MiB, expected %s", most_mib, expected);
    }
    fclose(in);
    if (code < 0) {
        free(read);
        return code;
    }
    read[*n_bytes] = '\0';
    *text = read;
    return 0;
}
