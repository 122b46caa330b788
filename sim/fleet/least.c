#include "fleet/least.h"

#include <stdlib.h>

#include "inflight/error.h"

static int64_t count_of(const struct least *least, uint32_t i)
{
    const struct ifl_load *load = &least->loads[i];
    switch (least->by) {
    case MOST_REQUESTS:
        return -ifl_outstanding_and_sent(load);
    case LEAST_ROUTED:
        return (int64_t)load->n_routed;
    default:
        return ifl_outstanding_and_sent(load);
    }
}

bool least_goes_before(const struct least *least, uint32_t b, uint32_t a)
{
    return count_of(least, b) < count_of(least, a);
}

/* a or b; a is the lower number, if both are replicas. */
static uint32_t match(const struct least *least, uint32_t a, uint32_t b)
{
    if (a == least->n || b == least->n)
        return a == least->n ? b : a;
    return least_goes_before(least, b, a) ? b : a;
}

int least_create(struct least *least, enum least_by by, const struct ifl_load *loads, uint32_t n)
{
    *least = (struct least){.loads = loads, .by = by, .n = n, .n_leaves = 1};
    while (least->n_leaves < n)
        least->n_leaves *= 2;
    least->winner = malloc(2 * (size_t)least->n_leaves * sizeof *least->winner);
    if (!least->winner)
        return IFL_E_NOMEM;
    for (uint32_t i = 0; i < least->n_leaves; i++)
        least->winner[least->n_leaves + i] = i < n ? i : n;
    least_note_all(least);
    return 0;
}

void least_destroy(struct least *least)
{
    free(least->winner);
    *least = (struct least){0};
}

static void play(struct least *least, uint32_t node)
{
    least->winner[node] = match(least, least->winner[2 * node], least->winner[2 * node + 1]);
}

void least_note_all(struct least *least)
{
    for (uint32_t node = least->n_leaves - 1; node > 0; node--)
        play(least, node);
}

void least_note(struct least *least, uint32_t i)
{
    ifl_assert(i < least->n);
    for (uint32_t node = (least->n_leaves + i) / 2; node > 0; node /= 2) {
        const uint32_t was = least->winner[node];
        play(least, node);
        if (was != i && least->winner[node] == was)
            return; /* what it lost before, it loses again */
    }
}

/* The nodes that cover the span exactly, from its two ends inwards. */
uint32_t least_of(const struct least *least, uint32_t from, uint32_t to)
{
    ifl_assert(from <= to && to <= least->n);
    uint32_t low = least->n, high = least->n;
    uint32_t left = least->n_leaves + from, right = least->n_leaves + to;
    for (; left < right; left /= 2, right /= 2) {
        if (left % 2 == 1)
            low = match(least, low, least->winner[left++]);
        if (right % 2 == 1)
            high = match(least, least->winner[--right], high);
    }
    return match(least, low, high);
}
