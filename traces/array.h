/* Arrays that grow. */
#ifndef TRACES_ARRAY_H
#define TRACES_ARRAY_H

#include <stddef.h>

#include "inflight/error.h"

/* Makes room for `need` items of the array, of which `array` is the address; it and *cap change
 * only after a success. */
int trace_reserve(void *array, size_t *cap, size_t need, size_t item_bytes,
                  struct ifl_error *error);

#endif
