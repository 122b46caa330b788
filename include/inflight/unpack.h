/* The bytes of a file, gzip or plain, which need not be seekable.
 *
 * A gzip file is one stream or several in a row (RFC 1952, 2.2), perhaps padded with zeros as on
 * tapes. Anything else behind a stream is an error, where gzread of zlib would end without a word:
 * it may be rows that were appended by hand. */
#ifndef INFLIGHT_UNPACK_H
#define INFLIGHT_UNPACK_H

#include <stddef.h>

#include "inflight/error.h"

struct ifl_unpacker; /* opaque */

/* `path` is borrowed. On success the caller owes ifl_unpack_close. */
int ifl_unpack_open(const char *path, struct ifl_unpacker **unpacker, struct ifl_error *error);

/* Writes *n of the bytes that follow, at least one and at most `cap` (above 0); *n is 0 at the end.
 * Errors name the file. */
int ifl_unpack(struct ifl_unpacker *unpacker, void *bytes, size_t cap, size_t *n,
               struct ifl_error *error);

/* NULL is allowed. */
void ifl_unpack_close(struct ifl_unpacker *unpacker);

#endif
