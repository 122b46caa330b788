/* Reads a file, gzip or plain, which need not be seekable.
 *
 * A gzip file is one stream or several in a row (RFC 1952, 2.2), perhaps followed by zeros as on
 * tapes. Other bytes behind a stream are an error: they may be rows that were appended by hand, and
 * gzread of zlib would drop them without an error. */
#ifndef INFLIGHT_UNPACK_H
#define INFLIGHT_UNPACK_H

#include <stddef.h>

#include "inflight/error.h"

struct ifl_unpacker; /* opaque */

/* `path` is borrowed until ifl_unpack_close, which the caller must call after a success. */
int ifl_unpack_open(const char *path, struct ifl_unpacker **unpacker, struct ifl_error *error);

/* Fills `bytes` with the next *n bytes, at least one and at most `cap` (above 0); *n is 0 at the
 * end of the file. Errors name the file. */
int ifl_unpack(struct ifl_unpacker *unpacker, void *bytes, size_t cap, size_t *n,
               struct ifl_error *error);

/* NULL is allowed. */
void ifl_unpack_close(struct ifl_unpacker *unpacker);

#endif
