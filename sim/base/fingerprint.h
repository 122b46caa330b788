/* A hash of bytes, used to detect later that they have changed. */
#ifndef SIM_BASE_FINGERPRINT_H
#define SIM_BASE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#define FINGERPRINT_OF_NOTHING 0xcbf29ce484222325u

/* FNV-1a. `print` is the hash of the bytes so far, FINGERPRINT_OF_NOTHING at first; the result is
 * the hash of these bytes followed by the n_bytes at `of`. */
static inline uint64_t fingerprint(uint64_t print, const void *of, size_t n_bytes)
{
    const unsigned char *bytes = of;
    for (size_t i = 0; i < n_bytes; i++)
        print = (print ^ bytes[i]) * 0x100000001b3u;
    return print;
}

#endif
