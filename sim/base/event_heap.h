/* A timer queue: a flat 4-ary heap of small records.
 *
 * Order: time, then rank, which the caller chooses so that the order does not depend on that of the
 * pushes. Grows geometrically; a push never allocates while there is room. */
#ifndef SIM_BASE_EVENT_HEAP_H
#define SIM_BASE_EVENT_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/time.h"

struct event {
    int64_t at_ns;
    uint64_t rank; /* of several at one time, the least comes first */
    uint64_t payload;
};

struct event_heap {
    struct event *of;
    size_t n, cap;
};

/* Room for n events; 0 or IFL_E_NOMEM. */
int event_reserve(struct event_heap *heap, size_t n);
/* 0 or IFL_E_NOMEM. A zeroed heap is valid and empty. */
int event_push(struct event_heap *heap, int64_t at_ns, uint64_t rank, uint64_t payload);
/* The earliest; the heap must not be empty. */
struct event event_pop(struct event_heap *heap);
/* The i-th event of heap->of comes at at_ns, which is earlier than it would have come. */
void event_hasten(struct event_heap *heap, size_t i, int64_t at_ns);
/* IFL_NEVER when empty. */
static inline int64_t event_next_ns(const struct event_heap *heap)
{
    return heap->n ? heap->of[0].at_ns : IFL_NEVER;
}
void event_heap_destroy(struct event_heap *heap);

#endif
