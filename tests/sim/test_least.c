/* The replica that goes first by a count, against a walk over all. */
#include <criterion/criterion.h>

#include "inflight/random.h"

#include "fleet/least.h"

static int64_t count_of(enum least_by by, const struct ifl_load *load)
{
    const int64_t n = ifl_outstanding_and_sent(load);
    return by == LEAST_ROUTED ? (int64_t)load->n_routed : by == MOST_REQUESTS ? -n : n;
}

static uint32_t least_by_walk(enum least_by by, const struct ifl_load *loads, uint32_t n,
                              uint32_t from, uint32_t to)
{
    uint32_t best = from < to ? from : n;
    for (uint32_t i = from; i < to; i++)
        if (count_of(by, &loads[i]) < count_of(by, &loads[best]))
            best = i;
    return best;
}

/* Random changes to fleets of 1 to 40 replicas, and random spans. */
static void compare_with_walks(enum least_by by, uint32_t n)
{
    struct ifl_load loads[40] = {{0}};
    struct least least;
    cr_assert_eq(least_create(&least, by, loads, n), 0);
    for (uint64_t k = 0; k < 300; k++) {
        const uint64_t u = ifl_draw(n, 0, k, 0);
        const uint32_t i = (uint32_t)(u % n), from = (uint32_t)(u >> 8) % (n + 1);
        const uint32_t to = from + (uint32_t)(u >> 32) % (n + 1 - from);
        loads[i].n_running = (int32_t)(u >> 16 & 7);
        loads[i].n_sent = u >> 24 & 3;
        loads[i].n_routed += u >> 26 & 1;
        least_note(&least, i);
        cr_assert_eq(least_of(&least, from, to), least_by_walk(by, loads, n, from, to));
    }
    least_destroy(&least);
}

Test(least, against_a_walk)
{
    for (enum least_by by = LEAST_REQUESTS; by < N_LEAST; by++)
        for (uint32_t n = 1; n <= 40; n++)
            compare_with_walks(by, n);
}
