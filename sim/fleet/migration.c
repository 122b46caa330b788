#include "fleet/migration.h"

#include <math.h>

#include <gsl/gsl_heapsort.h>

static double steps_of(const struct migration_load *load)
{
    return load->n_requests > 0 ? load->free_blocks / load->n_requests : INFINITY;
}

/* With so many requests more, or fewer, each of which holds as many blocks as the last one. */
static double steps_with(const struct migration_load *load, const struct migration_load *of,
                         int32_t n)
{
    const struct migration_load after = {.free_blocks =
                                             load->free_blocks - (double)n * of->last_blocks,
                                         .n_requests = load->n_requests + n};
    return steps_of(&after);
}

static bool gives(const struct migration_rules *rules, const struct migration_load *load)
{
    return load->n_lost > 0 || steps_of(load) < rules->threshold;
}

static bool takes(const struct migration_rules *rules, const struct migration_load *load)
{
    return load->n_lost == 0 && steps_of(load) > rules->threshold;
}

/* The fewest steps first; of equals the lowest number. */
static int by_fewest(const void *a, const void *b)
{
    const struct migration_load *x = a, *y = b;
    const double sx = steps_of(x), sy = steps_of(y);
    return sx != sy ? (sx > sy) - (sx < sy) : (x->replica > y->replica) - (x->replica < y->replica);
}

/* The most steps first; of equals the lowest number. */
static int by_most(const void *a, const void *b)
{
    const struct migration_load *x = a, *y = b;
    return steps_of(x) == steps_of(y) ? by_fewest(a, b) : by_fewest(b, a);
}

/* The load is the negative of steps: its difference falls, and stays above 0. */
static bool is_balanced(const struct migration_rules *rules, const struct migration_load *from,
                        const struct migration_load *to)
{
    const double before = steps_of(to) - steps_of(from);
    const double taken = steps_with(to, from, 1);
    const double after = taken - steps_with(from, from, -1);
    return taken >= rules->threshold && after > 0 && after < before;
}

size_t migration_pair(const struct migration_rules *rules, struct migration_load *loads, size_t n,
                      struct migration_load *room, struct migration_pair *pairs)
{
    size_t n_give = 0, n_take = 0, n_pairs = 0;
    for (size_t i = 0; i < n; i++) {
        const struct migration_load load = loads[i];
        if (gives(rules, &load))
            loads[n_give++] = load;
        else if (takes(rules, &load))
            room[n_take++] = load;
    }
    if (n_give == 0 || n_take == 0)
        return 0;
    gsl_heapsort(loads, n_give, sizeof *loads, by_fewest);
    gsl_heapsort(room, n_take, sizeof *room, by_most);
    for (size_t i = 0; i < n_give && i < n_take; i++)
        if (rules->pairs == PAIRS_DEFRAG || is_balanced(rules, &loads[i], &room[i]))
            pairs[n_pairs++] = (struct migration_pair){loads[i].replica, room[i].replica};
    return n_pairs;
}
