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
