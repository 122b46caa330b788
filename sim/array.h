/* Arrays that grow. What is in use is copied; the rest of a large array, which nobody has touched
 * yet, stays address space that no memory stands behind. */
#ifndef SIM_ARRAY_H
#define SIM_ARRAY_H

#include <stddef.h>

/* Room for n elements in the array that the pointer points to, of which the first n_used are in
 * use. 0, or -1 without memory: then it stays as it is. */
int array_grow(void *pointer_to_array, size_t n_used, size_t n, size_t element_bytes);

#endif
