/* Arrays that grow. Only the part in use is copied. The rest of a large array was never written, so
 * that no memory backs it yet. */
#ifndef SIM_BASE_ARRAY_H
#define SIM_BASE_ARRAY_H

#include <stddef.h>

#include "inflight/error.h"

/* To be called before there are threads: pages that are freed stay with the process, for the next
 * point, member of an ensemble or trial asks for as many (mallopt(3)). glibc would give most of
 * them back to the kernel, which clears them again: a quarter of the time of small runs. */
void array_keep_pages(void);
/* To be called before there are threads, by a program that makes each array once: from now on
 * malloc maps each one of MAPPED_BYTES, and gives its pages back when it is freed. */
void array_map_large(void);
enum { MAPPED_BYTES = 1 << 20 };

/* Makes room for n elements in the array that the pointer points to, of which the first n_used are
 * in use. 0 or IFL_E_NOMEM: then the array stays as it is. */
int array_grow(void *pointer_to_array, size_t n_used, size_t n, size_t element_bytes);

/* Makes room for one element more than n of `cap`: a full array doubles, the first has room for
 * `first`. Returns as array_grow does. */
int array_room(void *pointer_to_array, size_t n, size_t *cap, size_t first, size_t element_bytes);

#endif
