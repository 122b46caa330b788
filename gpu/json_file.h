/* A checkpoint's JSON files: its config.json and its index. */
#ifndef GPU_JSON_FILE_H
#define GPU_JSON_FILE_H

#include <jansson.h>
#include <stdint.h>

#include "inflight/error.h"

/* The document in a regular file of at most max_bytes, the caller's to release. NULL and one line
 * with the place of what is wrong. Keys that come twice are wrong. */
json_t *json_file_read(const char *path, int64_t max_bytes, struct ifl_error *error);

#endif
