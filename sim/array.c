#include "array.h"

#include <stdlib.h>
#include <string.h>

int array_grow(void *pointer_to_array, size_t n_used, size_t n, size_t element_bytes)
{
    void **array = pointer_to_array;
    void *grown = malloc(n * element_bytes);
    if (!grown)
        return -1;
    if (n_used > 0)
        memcpy(grown, *array, n_used * element_bytes);
    free(*array);
    *array = grown;
    return 0;
}
