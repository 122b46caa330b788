/* Radix sort of 64-bit keys that may each carry a 32-bit tag. */
#ifndef INFLIGHT_REPORTS_SORT_H
#define INFLIGHT_REPORTS_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

/* Ascending and stable; tag may be NULL. Sorted keys cost one comparison each. */
int sort_by_key(int64_t *key, uint32_t *tag, size_t n, struct ifl_error *error);

#endif
