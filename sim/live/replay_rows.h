/* A file of rows that is written during a run and has whole rows at every time.
 *
 * Rows are collected and written several at a time. If the disk takes a part of them only, the file
 * is cut back to whole rows. */
#ifndef SIM_LIVE_REPLAY_ROWS_H
#define SIM_LIVE_REPLAY_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/report.h"

#include "live/row_fields.h"

enum { REPLAY_ROWS_BYTES = 1 << 16 };

struct replay_rows {
    int fd; /* -1: closed */
    char path[IFL_PATH_BYTES];
    size_t n; /* bytes collected */
    int64_t n_written;
    char bytes[REPLAY_ROWS_BYTES];
};

/* Creates the file with the header as its only row. */
int replay_rows_open(struct replay_rows *rows, const char *path, const char *header,
                     struct ifl_error *error);
/* Returns room for a row of so many bytes, at most REPLAY_ROWS_BYTES / 2; NULL after an error. */
char *replay_rows_room(struct replay_rows *rows, size_t n_bytes, struct ifl_error *error);
/* The row ends here. */
static inline void replay_rows_end(struct replay_rows *rows, const char *end)
{
    rows->n = (size_t)(end - rows->bytes);
}
/* Writes the collected rows. */
int replay_rows_flush(struct replay_rows *rows, struct ifl_error *error);
/* Flushes and closes. `code` is the code of an earlier error; returns it, or the code of an error
 * now. */
int replay_rows_close(struct replay_rows *rows, int code, struct ifl_error *error);

#endif
