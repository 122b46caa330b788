#include "fleet/least.h"

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

int least_create(struct least *least, enum least_by by, const struct ifl_load *loads, uint32_t n)
{
    *least = (struct least){.loads = loads, .by = by};
    if (tournament_create(&least->of, n) < 0)
        return IFL_E_NOMEM;
    least_note_all(least);
    return 0;
}

void least_destroy(struct least *least)
{
    tournament_destroy(&least->of);
    *least = (struct least){0};
}

void least_note_all(struct least *least)
{
    for (uint32_t i = 0; i < least->of.n; i++)
        least_note(least, i);
}

void least_note(struct least *least, uint32_t i)
{
    ifl_assert(i < least->of.n);
    const int64_t count = count_of(least, i);
    if (count != least->of.key[i])
        tournament_set(&least->of, i, count);
}
