#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/assert.h"

int array_grow(void *pointer_to_array, size_t n_used, size_t n, size_t element_bytes)
{
    ifl_assert(n_used <= n);
    void *array, *grown = malloc(n * element_bytes);
    if (!grown)
        return IFL_E_NOMEM;
    memcpy(&array, pointer_to_array, sizeof array); /* a pointer to any type, read as bytes */
    if (n_used > 0)
        memcpy(grown, array, n_used * element_bytes);
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
