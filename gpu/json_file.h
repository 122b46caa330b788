/* A checkpoint's JSON files: its config.json and its index. */
#ifndef GPU_JSON_FILE_H
#define GPU_JSON_FILE_H

#include <jansson.h>
#include <stdint.h>

#include "inflight/error.h"

/* The document in a regular file of at most max_bytes; the caller releases it. On an error, NULL
 * and one line with its place in the file. A repeated key is an error. */
json_t *json_file_read(const char *path, int64_t max_bytes, struct ifl_error *error);

#endif
