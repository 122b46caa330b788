/* The free and the taken places of an array that grows. The place that was given back last is taken
 * first; places that were never taken are taken in order. */
#ifndef SIM_BASE_SLOTS_H
#define SIM_BASE_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/assert.h"
#include "inflight/error.h"

struct slots {
    uint32_t *free; /* [n_free] */
    uint32_t n, n_free;
};

/* Doubles the array that the pointer points to, of slots->n elements. The new elements are zeroed.
 * Returns 0 or IFL_E_NOMEM. */
int slots_grow(struct slots *slots, void *pointer_to_array, size_t element_bytes);

/* Makes sure that a place is free. Returns 0 or IFL_E_NOMEM; then the array is unchanged. Zeroed
 * slots and a NULL array are valid and empty. */
static inline int slots_reserve(struct slots *slots, void *pointer_to_array, size_t element_bytes)
{
    return slots->n_free > 0 ? 0 : slots_grow(slots, pointer_to_array, element_bytes);
}

static inline uint32_t slots_take(struct slots *slots)
{
    ifl_assert(slots->n_free > 0);
    return slots->free[--slots->n_free];
}

static inline void slots_give(struct slots *slots, uint32_t at)
{
    ifl_assert(at < slots->n && slots->n_free < slots->n);
    slots->free[slots->n_free++] = at;
}

/* Frees the slots, but not the array, which the caller owns. */
void slots_destroy(struct slots *slots);

#endif
