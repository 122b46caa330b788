/* Arrays that grow by doubling. */
#include "array.h"

#include <stdlib.h>
#include <string.h>

int trace_reserve(void *array, size_t *cap, size_t need, size_t item_bytes, struct ifl_error *error)
{
    void *old;
    if (need <= *cap)
        return 0;
    const size_t more = need > 2 * *cap ? need + 16 : 2 * *cap;
    memcpy(&old, array, sizeof old);
    void *items = realloc(old, more * item_bytes);
    if (!items)
        return ifl_fail_nomem(error);
    memcpy(array, &items, sizeof items);
    *cap = more;
    return 0;
}
