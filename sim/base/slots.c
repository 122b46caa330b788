#include "base/slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int slots_grow(struct slots *slots, void *pointer_to_array, size_t element_bytes)
{
    const uint32_t n = slots->n, cap = n ? 2 * n : 64;
    char *array;
    if (array_grow(pointer_to_array, n, cap, element_bytes) < 0 ||
        array_grow(&slots->free, slots->n_free, cap, sizeof *slots->free) < 0)
        return IFL_E_NOMEM;
    memcpy(&array, pointer_to_array, sizeof array); /* a pointer to any type, read as bytes */
    memset(array + n * element_bytes, 0, (cap - n) * element_bytes);
    for (uint32_t at = cap; at > n; at--)
        slots->free[slots->n_free++] = at - 1;
    slots->n = cap;
    return 0;
}

void slots_destroy(struct slots *slots)
{
    free(slots->free);
    *slots = (struct slots){0};
}
