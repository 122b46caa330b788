/* Files that are read as one text. */
#ifndef SIM_BASE_TEXT_FILE_H
#define SIM_BASE_TEXT_FILE_H

#include <stddef.h>

#include "inflight/error.h"

/* Reads the file, which is noted as an input: *text, of *n_bytes and a zero behind them, is the
 * caller's. A failure sets *text to NULL; so does a file of more than most_mib MiB. `expected` says
 * what the file should be, such as "a YAML configuration". */
int text_file_read(const char *path, size_t most_mib, const char *expected, char **text,
                   size_t *n_bytes, struct ifl_error *error);

#endif
