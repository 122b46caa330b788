#include "cost/document.h"

#include <string.h>

#include "base/data.h"

int document_folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

int document_find(const char *kind, const char *name, struct document *document,
                  struct ifl_error *error)
{
    const int code = data_resolve(kind, name, document->path, error);
    if (code)
        return code;
    const char *base = document->path + document_folder_bytes(document->path);
    const char *dot = strrchr(base, '.');
    const size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    snprintf(document->stem, sizeof document->stem, "%.*s", (int)n, base);
    return 0;
}
