/* Reads a file, gzip or plain. The file need not be seekable.
 *
 * A gzip file is one stream or several in a row (RFC 1952, 2.2). Zeros may follow, as padding on
 * tapes. Other bytes behind a stream are an error: they may be rows that were appended by hand, and
 * gzread of zlib would drop them without an error. */
#ifndef INFLIGHT_UNPACK_H
#define INFLIGHT_UNPACK_H

#include <stddef.h>

#include "inflight/error.h"

struct ifl_unpacker; /* opaque */

/* Opens the file. `path` is borrowed until ifl_unpack_close, which the caller must call after a
 * success. After an error, which names the file, *unpacker is NULL: IFL_E_INPUT if the file cannot
 * be opened, or IFL_E_NOMEM. */
int ifl_unpack_open(const char *path, struct ifl_unpacker **unpacker, struct ifl_error *error);

/* Fills `bytes` with the next *n bytes, at least one and at most `cap` (above 0); *n is 0 at the
 * end of the file, and in later calls. A damaged stream or a failed read is IFL_E_INPUT, too little
 * memory IFL_E_NOMEM; errors name the file. After an error `bytes` and *n are undefined, and only
 * ifl_unpack_close may follow. */
int ifl_unpack(struct ifl_unpacker *unpacker, void *bytes, size_t cap, size_t *n,
               struct ifl_error *error);

/* Closes the file and frees the unpacker. NULL is allowed. */
void ifl_unpack_close(struct ifl_unpacker *unpacker);

#endif
