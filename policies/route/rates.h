/* The requests that each replica was sent within the last seconds, or their weights: a sliding
 * window. Its memory is allocated when it is created; if it is full the oldest requests leave it
 * early. */
#ifndef POLICIES_ROUTE_RATES_H
#define POLICIES_ROUTE_RATES_H

#include <stdlib.h>

#include "inflight/policy.h"

struct sent {
    int64_t at_ns;
    uint32_t replica;
    uint32_t weight;
};

struct rates {
    struct sent *of;   /* [cap]: [first, first + n) modulo cap, by time */
    uint64_t *n_of;    /* [n_replicas]: sum of weights in the window */
    bool *was_sent_to; /* [n_replicas] the replica was ever sent a request */
    size_t first, n, cap;
    int64_t window_ns;
};

static inline int rates_create(struct rates *rates, size_t n_replicas, size_t cap,
                               int64_t window_ns, struct ifl_error *error)
{
    *rates = (struct rates){.of = calloc(cap, sizeof *rates->of),
                            .n_of = calloc(n_replicas, sizeof *rates->n_of),
                            .was_sent_to = calloc(n_replicas, sizeof *rates->was_sent_to),
                            .cap = cap,
                            .window_ns = window_ns};
    return rates->of && rates->n_of && rates->was_sent_to ? 0 : ifl_fail_nomem(error);
}

static inline void rates_destroy(struct rates *rates)
{
    free(rates->of);
    free(rates->n_of);
    free(rates->was_sent_to);
    *rates = (struct rates){0};
}

static inline void rates_drop_first(struct rates *rates)
{
    ifl_assert(rates->n > 0 && rates->cap > 0);
    rates->n_of[rates->of[rates->first].replica] -= rates->of[rates->first].weight;
    rates->first = rates->first + 1 < rates->cap ? rates->first + 1 : 0;
    rates->n--;
}

/* Removes requests from before the window that ends now. Changes no result at this time or later.
 */
static inline void rates_slide(struct rates *rates, int64_t now_ns)
{
    while (rates->n > 0 && rates->of[rates->first].at_ns < now_ns - rates->window_ns)
        rates_drop_first(rates);
}

static inline void rates_note(struct rates *rates, size_t replica, uint32_t weight, int64_t now_ns)
{
    ifl_require(rates->cap > 0);
    rates_slide(rates, now_ns);
    if (rates->n == rates->cap)
        rates_drop_first(rates);
    rates->of[(rates->first + rates->n++) % rates->cap] =
        (struct sent){now_ns, (uint32_t)replica, weight};
    rates->n_of[replica] += weight;
    rates->was_sent_to[replica] = true;
}

/* The first replica that was never sent a request, else the first with the fewest in the window,
 * which rates_slide has brought up to date. */
static inline size_t rates_lowest(const struct rates *rates, const struct ifl_fleet *fleet)
{
    size_t best = ifl_nth(fleet, IFL_PREFILLS, 0);
    for (size_t k = 0; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        if (!rates->was_sent_to[i])
            return i;
        best = rates->n_of[i] < rates->n_of[best] ? i : best;
    }
    return best;
}

#endif
