/* Arrays that grow. */
#ifndef TRACES_ARRAY_H
#define TRACES_ARRAY_H

#include <stddef.h>

#include "inflight/error.h"

/* Makes room for `need` items in an array; `array` is the address of the pointer to it. The pointer
 * and *cap change only on success. */
int trace_reserve(void *array, size_t *cap, size_t need, size_t item_bytes,
                  struct ifl_error *error);

#endif
