#include "base/event_heap.h"

#include <stdbool.h>
#include <stdlib.h>

#include "inflight/error.h"

static bool before(struct event a, struct event b)
{
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.rank < b.rank;
}

int event_reserve(struct event_heap *heap, size_t n)
{
    if (n <= heap->cap)
        return 0;
    struct event *of = realloc(heap->of, n * sizeof *of);
    if (!of)
        return IFL_E_NOMEM;
    heap->of = of;
    heap->cap = n;
    return 0;
}

/* Puts the event at i or above. */
static void rise(struct event_heap *heap, size_t i, struct event event)
{
    for (; i > 0 && before(event, heap->of[(i - 1) / 4]); i = (i - 1) / 4)
        heap->of[i] = heap->of[(i - 1) / 4];
    heap->of[i] = event;
}

int event_push(struct event_heap *heap, int64_t at_ns, uint64_t rank, uint64_t payload)
{
    if (heap->n == heap->cap && event_reserve(heap, heap->cap ? 2 * heap->cap : 64) < 0)
        return IFL_E_NOMEM;
    rise(heap, heap->n++, (struct event){at_ns, rank, payload});
    return 0;
}

void event_hasten(struct event_heap *heap, size_t i, int64_t at_ns)
{
    ifl_assert(i < heap->n && at_ns <= heap->of[i].at_ns);
    rise(heap, i, (struct event){at_ns, heap->of[i].rank, heap->of[i].payload});
}

static size_t earliest_child(const struct event_heap *heap, size_t i)
{
    const size_t first = 4 * i + 1;
    size_t best = first;
    for (size_t c = first + 1; c < first + 4 && c < heap->n; c++)
        if (before(heap->of[c], heap->of[best]))
            best = c;
    return best;
}

struct event event_pop(struct event_heap *heap)
{
    ifl_require(heap->n > 0);
    const struct event top = heap->of[0];
    const struct event last = heap->of[--heap->n];
    size_t i = 0;
    while (4 * i + 1 < heap->n) {
        const size_t c = earliest_child(heap, i);
        if (!before(heap->of[c], last))
            break;
        heap->of[i] = heap->of[c];
        i = c;
    }
    heap->of[i] = last;
    return top;
}

void event_heap_destroy(struct event_heap *heap)
{
    free(heap->of);
    *heap = (struct event_heap){0};
}
