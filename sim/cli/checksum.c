#include "cli/checksum.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK_BYTES = 1 << 16 };

static void add_open(struct checksum *sum, int fd)
{
    unsigned char chunk[CHUNK_BYTES];
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) > 0;) {
        sum->crc = crc32((uLong)sum->crc, chunk, (uInt)n);
        sum->n_bytes += (uint64_t)n;
    }
}

void checksum_add(struct checksum *sum, const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
        return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    add_open(sum, fd);
    close(fd);
}

struct checksum checksum_join(struct checksum a, struct checksum b)
{
    return (struct checksum){
        .n_bytes = a.n_bytes + b.n_bytes,
        .crc = crc32_combine((uLong)a.crc, (uLong)b.crc, (z_off_t)b.n_bytes),
    };
}
