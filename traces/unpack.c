/* gzip streams by zlib's inflate (RFC 1952). gzread is not used because it takes any bytes behind a
 * stream for its end. */
#include "inflight/unpack.h"
#include "inflight/inputs.h"
#include "inflight/minmax.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PACKED_BYTES = 1 << 16, MAGIC_BYTES = 2, GZIP_ONLY = 16 };

enum packing { NOT_SEEN, PLAIN, GZIP };

struct ifl_unpacker {
    const char *path;
    int fd;
    bool at_end; /* the file is read to its end */
    enum packing packing;
    bool in_stream; /* a stream has begun and not ended */
    z_stream stream;
    unsigned long long n_read;          /* bytes of the file */
    unsigned char packed[PACKED_BYTES]; /* unread: stream.next_in[0, avail_in) */
};

/* ---- the file ---- */

/* Reads more of the file behind the unread bytes. */
static int load(struct ifl_unpacker *u, struct ifl_error *error)
{
    ssize_t n;
    memmove(u->packed, u->stream.next_in, u->stream.avail_in);
    u->stream.next_in = u->packed;
    do
        n = read(u->fd, u->packed + u->stream.avail_in, PACKED_BYTES - u->stream.avail_in);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return ifl_fail_at(error, u->path, 0, 0, "cannot read: %s", strerror(errno));
    u->at_end = n == 0;
    u->n_read += (unsigned long long)n;
    u->stream.avail_in += (unsigned)n;
    return 0;
}

static int load_magic(struct ifl_unpacker *u, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0 && !u->at_end && u->stream.avail_in < MAGIC_BYTES)
        rc = load(u, error);
    return rc;
}

static bool at_magic(const struct ifl_unpacker *u)
{
    return u->stream.avail_in >= MAGIC_BYTES && u->stream.next_in[0] == 0x1f &&
           u->stream.next_in[1] == 0x8b;
}

/* ---- streams ---- */

static int fail_inflate(const struct ifl_unpacker *u, int code, struct ifl_error *error)
{
    if (code == Z_MEM_ERROR) {
        ifl_fail_nomem(error);
        return ifl_blame_file(error, u->path);
    }
    return ifl_fail_at(error, u->path, 0, 0, "cannot decompress: %s",
                       u->stream.msg ? u->stream.msg : "the gzip stream is damaged");
}

static int fail_behind(const struct ifl_unpacker *u, struct ifl_error *error)
{
    return ifl_fail_at(error, u->path, 0, 0,
                       "the gzip stream ends at byte %llu and what follows is none, expected "
                       "another one or the end of the file",
                       u->n_read - u->stream.avail_in);
}

static void skip_zeros(struct ifl_unpacker *u)
{
    while (u->stream.avail_in > 0 && *u->stream.next_in == 0) {
        u->stream.next_in++;
        u->stream.avail_in--;
    }
}

/* Begins the next stream. At the end of the file there is none, and no byte is left unread. */
static int next_stream(struct ifl_unpacker *u, struct ifl_error *error)
{
    int rc = 0;
    for (skip_zeros(u); rc == 0 && !u->at_end && u->stream.avail_in == 0; skip_zeros(u))
        rc = load(u, error);
    if (rc == 0)
        rc = load_magic(u, error);
    if (rc < 0 || (u->at_end && u->stream.avail_in == 0))
        return rc;
    if (!at_magic(u))
        return fail_behind(u, error);
    const int code = inflateReset(&u->stream);
    u->in_stream = code == Z_OK;
    return u->in_stream ? 0 : fail_inflate(u, code, error);
}

static int inflate_some(struct ifl_unpacker *u, struct ifl_error *error)
{
    if (u->stream.avail_in == 0 && load(u, error) < 0)
        return error->code;
    if (u->stream.avail_in == 0)
        return ifl_fail_at(error, u->path, 0, 0,
                           "the gzip stream is cut short, expected a complete file");
    const int code = inflate(&u->stream, Z_NO_FLUSH);
    u->in_stream = code != Z_STREAM_END;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR
               ? 0
               : fail_inflate(u, code, error);
}

static int read_gzip(struct ifl_unpacker *u, void *bytes, size_t cap, size_t *n,
                     struct ifl_error *error)
{
    const unsigned room = cap < UINT_MAX ? (unsigned)cap : UINT_MAX;
    int rc = 0;
    u->stream.next_out = bytes;
    u->stream.avail_out = room;
    /* Fills `bytes` to the last byte, so that a truncated stream is reported as such before its
     * contents are parsed. */
    while (rc == 0 && u->stream.avail_out > 0) {
        if (!u->in_stream)
            rc = next_stream(u, error);
        if (rc < 0 || !u->in_stream)
            break;
        rc = inflate_some(u, error);
    }
    *n = room - u->stream.avail_out;
    return rc;
}

/* ---- plain ---- */

static int read_plain(struct ifl_unpacker *u, void *bytes, size_t cap, size_t *n,
                      struct ifl_error *error)
{
    if (u->stream.avail_in == 0 && !u->at_end && load(u, error) < 0)
        return error->code;
    *n = ifl_min(u->stream.avail_in, cap);
    memcpy(bytes, u->stream.next_in, *n);
    u->stream.next_in += *n;
    u->stream.avail_in -= (unsigned)*n;
    return 0;
}

/* ---- both ---- */

static int recognise(struct ifl_unpacker *u, struct ifl_error *error)
{
    const int rc = load_magic(u, error);
    if (rc < 0)
        return rc;
    u->packing = at_magic(u) ? GZIP : PLAIN;
    return 0;
}

int ifl_unpack(struct ifl_unpacker *u, void *bytes, size_t cap, size_t *n, struct ifl_error *error)
{
    ifl_assert(cap > 0);
    *n = 0;
    if (u->packing == NOT_SEEN && recognise(u, error) < 0)
        return error->code;
    return u->packing == GZIP ? read_gzip(u, bytes, cap, n, error)
                              : read_plain(u, bytes, cap, n, error);
}

int ifl_unpack_open(const char *path, struct ifl_unpacker **unpacker, struct ifl_error *error)
{
    struct ifl_unpacker *u = calloc(1, sizeof *u);
    *unpacker = NULL;
    if (!u || inflateInit2(&u->stream, MAX_WBITS + GZIP_ONLY) != Z_OK) {
        free(u);
        ifl_fail_nomem(error);
        return ifl_blame_file(error, path);
    }
    u->path = path;
    u->stream.next_in = u->packed;
    u->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (u->fd < 0) {
        const int why = errno;
        ifl_unpack_close(u);
        return ifl_fail_at(error, path, 0, 0, "cannot open: %s", strerror(why));
    }
    ifl_input_note(path);
    *unpacker = u;
    return 0;
}

void ifl_unpack_close(struct ifl_unpacker *u)
{
    if (!u)
        return;
    if (u->fd >= 0)
        close(u->fd);
    inflateEnd(&u->stream);
    free(u);
}
