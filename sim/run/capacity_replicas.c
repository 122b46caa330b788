/* The fewest replicas that meet the objectives at a given rate.
 *
 * All trials have the rate capacity.target_rps and the same random numbers, hence the same
 * requests. Steps of 1, 2, 4, ... replicas from the start find a number that meets the objectives
 * and a smaller one that misses them; bisection then narrows them until they are neighbours. Upward
 * steps stop early if trials no longer differ. If the margin is not monotonic in the number of
 * replicas, smaller numbers may meet the objectives, too. */
#include <math.h>

#include "run/capacity_parts.h"

struct fence {
    int32_t beyond, within; /* 0: none yet */
};

/* The fewest replicas within, and the most beyond that are fewer. */
static struct fence fence_of(const struct search *search)
{
    const struct capacity *found = search->found;
    struct fence fence = {0, 0};
    for (size_t i = 0; i < found->n_trials; i++) {
        const struct capacity_trial *trial = &found->trials[i];
        if (search->margin_of(trial) <= 0 && (!fence.within || trial->replicas < fence.within))
            fence.within = trial->replicas;
    }
    for (size_t i = 0; i < found->n_trials; i++) {
        const int32_t n = found->trials[i].replicas;
        if ((!fence.within || n < fence.within) && n > fence.beyond)
            fence.beyond = n;
    }
    return fence;
}

static void try_replicas(struct search *search, int32_t n)
{
    capacity_try(search, search->options->configs[0].capacity.target_rps, n);
}

static bool alike(double a, double b)
{
    return fabs(a - b) <= 1e-3 * fabs(b);
}

/* More replicas than requests ever meet in: the last trials are alike. As long as there are too
 * few, each one more serves more tokens a second, also where the objectives see nothing of it. */
static bool is_flat(const struct search *search)
{
    enum { ALIKE = 4 };
    const struct capacity *found = search->found;
    const struct capacity_trial *last = &found->trials[found->n_trials - 1];
    bool flat = found->n_trials >= ALIKE;
    for (size_t i = 1; i < ALIKE && flat; i++)
        flat = alike(search->margin_of(last - i), search->margin_of(last)) &&
               alike((last - i)->output_throughput_tok_per_s.mean,
                     last->output_throughput_tok_per_s.mean);
    return flat;
}

static struct fence enclose(struct search *search, int32_t start)
{
    const int32_t most = search->options->configs[0].capacity.max_replicas;
    int32_t n = start < most ? start : most, step = 1;
    try_replicas(search, n);
    struct fence fence = fence_of(search);
    while (search->code == 0 && !fence.within && n < most && !is_flat(search)) {
        n = n < most - step ? n + step : most;
        step *= 2;
        try_replicas(search, n);
        fence = fence_of(search);
    }
    while (search->code == 0 && fence.within > 1 && !fence.beyond) {
        n = fence.within > step ? fence.within - step : 1;
        step *= 2;
        try_replicas(search, n);
        fence = fence_of(search);
    }
    return fence;
}

static struct fence close_in(struct search *search, int32_t start)
{
    struct fence fence = enclose(search, start);
    while (search->code == 0 && fence.within - fence.beyond > 1 && fence.beyond > 0) {
        try_replicas(search, fence.beyond + (fence.within - fence.beyond) / 2);
        fence = fence_of(search);
    }
    return fence;
}

static double margin_with(const struct search *search, int32_t n)
{
    const double rate_rps = search->options->configs[0].capacity.target_rps;
    return search->margin_of(capacity_known(search, rate_rps, n));
}

/* Where the margin, straight between two neighbours, is 0; INFINITY: nowhere. */
static double crossing_of(struct search *search, double (*margin_of)(const struct capacity_trial *),
                          int32_t start, struct fence *fence)
{
    search->margin_of = margin_of;
    *fence = close_in(search, start);
    if (search->code < 0 || fence->within == 0)
        return INFINITY;
    if (fence->beyond == 0)
        return fence->within;
    const double missed = margin_with(search, fence->beyond);
    return fence->beyond + missed / (missed - margin_with(search, fence->within));
}

static size_t place_of(const struct search *search, int32_t replicas)
{
    const struct capacity *found = search->found;
    const double rate_rps = search->options->configs[0].capacity.target_rps;
    return (size_t)(capacity_known(search, rate_rps, replicas) - found->trials);
}

void capacity_find_replicas(struct search *search, int32_t start)
{
    struct capacity *found = search->found;
    struct fence fence, end;
    found->low_crossing = found->high_crossing = (double)NAN;
    found->crossing = crossing_of(search, capacity_margin, start, &fence);
    found->status = fence.within > 0 ? CAPACITY_FOUND : CAPACITY_NONE;
    found->replicas = fence.within;
    if (search->code < 0)
        return;
    found->at = place_of(search, fence.within > 0 ? fence.within : fence.beyond);
    if (fence.beyond > 0)
        found->binding = capacity_missed(found, &found->trials[place_of(search, fence.beyond)]);
    if (search->options->n_replications < 2 || search->member > 0 || fence.within == 0)
        return;
    found->low_crossing = crossing_of(search, capacity_margin_low, fence.within, &end);
    found->low_replicas = end.within;
    found->high_crossing = crossing_of(search, capacity_margin_high, fence.within, &end);
    found->high_replicas = end.within;
}
