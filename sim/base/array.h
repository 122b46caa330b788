/* Arrays that grow. Growing copies only the part in use. The rest of a large array is never
 * written, so that no physical memory backs it. */
#ifndef SIM_BASE_ARRAY_H
#define SIM_BASE_ARRAY_H

#include <stddef.h>

#include "inflight/error.h"

/* Keeps freed pages in the process (mallopt(3)), since the next point, member of an ensemble or
 * trial asks for as many. Otherwise glibc would give most of them back to the kernel, which clears
 * them again: a quarter of the time of small runs. Call it before any thread is started. */
void array_keep_pages(void);
/* Makes malloc map each array of at least MAPPED_BYTES separately and give its pages back when it
 * is freed: for a program that makes each array once. Call it before any thread is started. */
void array_map_large(void);
enum { MAPPED_BYTES = 1 << 20 };

/* Makes room for n elements in the array that the pointer points to, of which the first n_used are
 * in use. Returns 0 or IFL_E_NOMEM; then the array is unchanged. */
int array_grow(void *pointer_to_array, size_t n_used, size_t n, size_t element_bytes);

/* Makes room for element n of an array with capacity *cap: a full array doubles, and an empty one
 * gets room for `first` elements. Returns as array_grow does. */
int array_room(void *pointer_to_array, size_t n, size_t *cap, size_t first, size_t element_bytes);

#endif
