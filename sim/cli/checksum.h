/* The checksum of the contents of files: their length in bytes and their CRC-32. */
#ifndef SIM_CLI_CHECKSUM_H
#define SIM_CLI_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

struct checksum {
    uint64_t n_bytes;
    uint64_t crc; /* CRC-32 */
};

/* Adds the file to the sum. Only regular files are read, since reading a pipe would empty it. A
 * file that cannot be read counts as empty. */
void checksum_add(struct checksum *sum, const char *path);

/* The checksum of the contents of `a` followed by those of `b`. */
struct checksum checksum_join(struct checksum a, struct checksum b);

static inline bool checksum_same(const struct checksum *a, const struct checksum *b)
{
    return a->n_bytes == b->n_bytes && a->crc == b->crc;
}

#endif
