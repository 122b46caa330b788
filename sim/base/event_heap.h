/* A timer queue: a flat 4-ary heap of small records.
 *
 * Events are ordered by time, then by rank. The caller chooses ranks so that the order does not
 * depend on the order of the pushes. The heap grows geometrically; a push never allocates while
 * there is room. */
#ifndef SIM_BASE_EVENT_HEAP_H
#define SIM_BASE_EVENT_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/time.h"

struct event {
    int64_t at_ns;
    uint64_t rank; /* of several events at one time, the one with the least rank comes first */
    uint64_t payload;
};

struct event_heap {
    struct event *of;
    size_t n, cap;
};

/* Makes room for n events. Returns 0 or IFL_E_NOMEM. */
int event_reserve(struct event_heap *heap, size_t n);
/* Returns 0 or IFL_E_NOMEM. A zeroed heap is valid and empty. */
int event_push(struct event_heap *heap, int64_t at_ns, uint64_t rank, uint64_t payload);
/* Removes and returns the earliest event; the heap must not be empty. */
struct event event_pop(struct event_heap *heap);
/* Moves event heap->of[i] to at_ns, which must be earlier than its time so far. */
void event_hasten(struct event_heap *heap, size_t i, int64_t at_ns);
/* Returns the time of the earliest event; IFL_NEVER if the heap is empty. */
static inline int64_t event_next_ns(const struct event_heap *heap)
{
    return heap->n ? heap->of[0].at_ns : IFL_NEVER;
}
void event_heap_destroy(struct event_heap *heap);

#endif
