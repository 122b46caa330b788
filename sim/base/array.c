#include "base/array.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/assert.h"

enum {
    KEPT_BYTES = 32 << 20, /* the largest threshold that glibc takes: half a thread's heap */
    MOST_KEPT_BYTES = 256 << 20
};

static bool maps_large; /* array_map_large was called */

void array_keep_pages(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, MOST_KEPT_BYTES);
#endif
}

void array_map_large(void)
{
#ifdef __GLIBC__
    maps_large = mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES) == 1;
#endif
}

/* An array that malloc has mapped moves, with all of its pages, where a copy would touch twice as
 * many. */
static bool is_mapped(size_t n_used, size_t element_bytes)
{
    return maps_large && n_used >= MAPPED_BYTES / element_bytes;
}

int array_grow(void *pointer_to_array, size_t n_used, size_t n, size_t element_bytes)
{
    ifl_assert(n_used <= n);
    void *array, *grown;
    memcpy(&array, pointer_to_array, sizeof array); /* a pointer to any type, read as bytes */
    const bool moves = is_mapped(n_used, element_bytes);
    grown = moves ? realloc(array, n * element_bytes) : malloc(n * element_bytes);
    if (!grown)
        return IFL_E_NOMEM;
    if (n_used > 0 && !moves)
        memcpy(grown, array, n_used * element_bytes);
    if (!moves)
        free(array);
    memcpy(pointer_to_array, &grown, sizeof grown);
    return 0;
}

int array_room(void *pointer_to_array, size_t n, size_t *cap, size_t first, size_t element_bytes)
{
    const size_t wanted = *cap ? 2 * *cap : first;
    if (n < *cap)
        return 0;
    if (array_grow(pointer_to_array, n, wanted, element_bytes) < 0)
        return IFL_E_NOMEM;
    *cap = wanted;
    return 0;
}
