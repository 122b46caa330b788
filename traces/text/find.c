/* The file of a tokenizer: the path itself, or one in the folder that it names. */
#include "text/count.h"

#include <sys/stat.h>

const char *text_find(const char *path, char found[TEXT_PATH_BYTES])
{
    static const char *const names[] = {"tokenizer.json", "tekken.json", "tokenizer.model"};
    struct stat status;
    if (stat(path, &status) < 0 || !S_ISDIR(status.st_mode))
        return path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int n = snprintf(found, TEXT_PATH_BYTES, "%s/%s", path, names[i]);
        if (n > 0 && n < TEXT_PATH_BYTES && stat(found, &status) == 0)
            return found;
    }
    return path;
}
