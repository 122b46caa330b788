/* What a file holds, as far as two numbers can say. */
#ifndef SIM_CLI_CHECKSUM_H
#define SIM_CLI_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

struct checksum {
    uint64_t n_bytes;
    uint64_t crc; /* CRC-32 */
};

/* Adds the file to the sum. Only regular files are read, as a pipe would be empty afterwards; what
 * cannot be read counts as empty. */
void checksum_add(struct checksum *sum, const char *path);

static inline bool checksum_same(const struct checksum *a, const struct checksum *b)
{
    return a->n_bytes == b->n_bytes && a->crc == b->crc;
}

#endif
