#include "cli/placement_choice.h"

#include <gsl/gsl_heapsort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"

/* ---- candidates ---- */

static bool is_apart(const struct placement *placement)
{
    return placement->config.search == PLACEMENT_APART;
}

static bool all_priced(const struct placement *placement)
{
    bool priced = true;
    for (size_t i = 0; i < placement->n_pools; i++)
        priced = priced && !isnan(placement->pools[i].usd_per_gpu_hour);
    return priced;
}

static double cost_of(const struct placement *placement, const struct placed *parts)
{
    return all_priced(placement) ? placement_usd_per_hour(placement, parts)
                                 : placement_gpus(placement, parts);
}

/* Where the trace is too short to say (CAPACITY_UNBOUNDED) nothing can be made of the candidate. */
static double goodput_of(const struct capacity_row *row)
{
    return row->error.code == 0 && row->status == CAPACITY_FOUND ? row->rps : 0;
}

double choice_value(const struct placement *placement, const struct capacity_row *rows, size_t i)
{
    return goodput_of(&rows[i]) / cost_of(placement, placement_at(placement, i));
}

static bool searches(const struct placement *placement, size_t i, size_t pool)
{
    return !is_apart(placement) || placement_at(placement, i)[pool].count > 0;
}

size_t choice_best(const struct placement *placement, const struct capacity_row *rows, size_t pool)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < placement->n; i++) {
        const double value = choice_value(placement, rows, i);
        if (value <= 0 || !searches(placement, i, pool))
            continue;
        const double lead = best == SIZE_MAX ? 1 : value - choice_value(placement, rows, best);
        if (lead > 0 || (lead == 0 && placement_gpus(placement, placement_at(placement, i)) <
                                          placement_gpus(placement, placement_at(placement, best))))
            best = i;
    }
    return best;
}

/* ---- placements made of candidates ---- */

static int add(const struct placement *placement, struct choices *choices,
               const struct placed *parts, double rps, struct ifl_error *error)
{
    if (array_room(&choices->of, choices->n, &choices->cap, 64, sizeof *choices->of) < 0)
        return ifl_fail_nomem(error);
    struct choice *choice = &choices->of[choices->n++];
    *choice = (struct choice){.n_gpus = placement_gpus(placement, parts),
                              .usd_per_hour = placement_usd_per_hour(placement, parts),
                              .cost = cost_of(placement, parts),
                              .rps = rps};
    memcpy(choice->parts, parts, placement->n_pools * sizeof *parts);
    return 0;
}

/* By cost; of equal cost what carries more comes first, then what has fewer GPUs, then the smaller
 * degrees of the first pools. */
static int by_cost(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    if (x->rps != y->rps)
        return x->rps > y->rps ? -1 : 1;
    if (x->n_gpus != y->n_gpus)
        return x->n_gpus < y->n_gpus ? -1 : 1;
    for (size_t i = 0; i < MAX_PLACED_POOLS; i++) {
        const struct placed *p = &x->parts[i], *q = &y->parts[i];
        const int order = p->tensor != q->tensor       ? p->tensor - q->tensor
                          : p->pipeline != q->pipeline ? p->pipeline - q->pipeline
                                                       : p->count - q->count;
        if (order != 0)
            return order;
    }
    return 0;
}

/* Only those that carry more than all before them stay. */
static void keep_front(struct choices *choices)
{
    double most = 0;
    size_t n = 0;
    if (choices->n > 1)
        gsl_heapsort(choices->of, choices->n, sizeof *choices->of, by_cost);
    for (size_t i = 0; i < choices->n; i++)
        if (choices->of[i].rps > most) {
            most = choices->of[i].rps;
            choices->of[n++] = choices->of[i];
        }
    choices->n = n;
}

/* The fewest that carry the rate. */
static int32_t replicas_for(double rps, double goodput)
{
    return (int32_t)fmin(fmax(ceil(rps / goodput - 1e-9), 1), 1e6);
}

/* The two phases, and what a replica of each carries. */
struct phases {
    size_t pool[2], candidate[2];
    double goodput[2];
};

static void combine(const struct placement *placement, const struct phases *phases,
                    const int32_t counts[2], struct placed *parts)
{
    for (size_t k = 0; k < 2; k++) {
        const size_t pool = phases->pool[k];
        parts[pool] = placement_at(placement, phases->candidate[k])[pool];
        parts[pool].count = counts[k];
    }
}

static double rate_of(const struct phases *phases, const int32_t counts[2])
{
    return fmin(counts[0] * phases->goodput[0], counts[1] * phases->goodput[1]);
}

/* All numbers of both where one replica less of either would carry less, up to the target and the
 * budget: of n of the first, more than (n - 1) goodput_1 / goodput_2 of the second, and no more
 * than carry n goodput_1. */
static int add_counts(const struct placement *placement, struct choices *choices,
                      const struct phases *phases, struct ifl_error *error)
{
    const double target = placement->target_rps;
    const int32_t most = target > 0 ? replicas_for(target, phases->goodput[0]) : INT32_MAX;
    const int32_t most_second = target > 0 ? replicas_for(target, phases->goodput[1]) : INT32_MAX;
    const double ratio = phases->goodput[0] / phases->goodput[1];
    struct placed parts[MAX_PLACED_POOLS];
    for (int32_t n = 1; n <= most; n++) {
        const int32_t least = (int32_t)fmin(floor((n - 1) * ratio + 1e-9), 1e6) + 1;
        const int32_t enough = replicas_for(n * phases->goodput[0], phases->goodput[1]);
        for (int32_t m = least; m <= ifl_min(ifl_max(enough, least), most_second); m++) {
            const int32_t counts[] = {n, m};
            combine(placement, phases, counts, parts);
            if (!placement_affords(placement, parts))
                break;
            if (add(placement, choices, parts, rate_of(phases, counts), error) < 0)
                return error->code;
        }
        const int32_t cheapest[] = {n, least};
        combine(placement, phases, cheapest, parts);
        if (least > most_second || !placement_affords(placement, parts))
            return 0;
    }
    return 0;
}

static int add_pairs(const struct placement *placement, const struct capacity_row *rows,
                     struct choices *choices, struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < placement->n; i++)
        for (size_t k = 0; k < placement->n && code == 0; k++) {
            const struct phases phases = {
                {0, 1}, {i, k}, {goodput_of(&rows[i]), goodput_of(&rows[k])}};
            if (phases.goodput[0] <= 0 || phases.goodput[1] <= 0 || !searches(placement, i, 0) ||
                !searches(placement, k, 1))
                continue;
            code = add_counts(placement, choices, &phases, error);
            keep_front(choices);
        }
    return code;
}

static bool has_budget(const struct placement *placement)
{
    return placement->config.max_gpus > 0 || placement->config.max_usd_per_hour > 0;
}

/* The candidate, n times. */
static void repeat(const struct placement *placement, size_t i, int32_t n, struct placed *parts)
{
    memcpy(parts, placement_at(placement, i), placement->n_pools * sizeof *parts);
    for (size_t p = 0; p < placement->n_pools; p++)
        parts[p].count *= n;
}

/* How often a pair is taken: as often as the target needs, or as the budget has room for. */
static int32_t most_times(const struct placement *placement, size_t i, double goodput)
{
    struct placed parts[MAX_PLACED_POOLS];
    int32_t n = 1;
    if (placement->config.search != PLACEMENT_SEGMENTS)
        return 1;
    if (placement->target_rps > 0)
        return replicas_for(placement->target_rps, goodput);
    while (has_budget(placement)) {
        repeat(placement, i, n + 1, parts);
        if (!placement_affords(placement, parts))
            break;
        n++;
    }
    return n;
}

/* Whole candidates; of pairs, several alike. */
static int add_wholes(const struct placement *placement, const struct capacity_row *rows,
                      struct choices *choices, struct ifl_error *error)
{
    struct placed parts[MAX_PLACED_POOLS];
    for (size_t i = 0; i < placement->n; i++) {
        const double goodput = goodput_of(&rows[i]);
        const int32_t most = goodput > 0 ? most_times(placement, i, goodput) : 0;
        for (int32_t n = 1; n <= most; n++) {
            repeat(placement, i, n, parts);
            if (!placement_affords(placement, parts))
                break;
            if (add(placement, choices, parts, n * goodput, error) < 0)
                return error->code;
        }
        keep_front(choices);
    }
    return 0;
}

/* ---- the algorithm's ---- */

/* Without a target the rate is the most that the budget has room for. */
static int find_apart(const struct placement *placement, const struct capacity_row *rows,
                      struct placed *parts, double *rps, struct ifl_error *error)
{
    const size_t best[] = {choice_best(placement, rows, 0), choice_best(placement, rows, 1)};
    struct choices within = {0};
    double rate = placement->target_rps;
    int code = 0;
    if (best[0] == SIZE_MAX || best[1] == SIZE_MAX)
        return 0;
    const struct phases phases = {
        {0, 1}, {best[0], best[1]}, {goodput_of(&rows[best[0]]), goodput_of(&rows[best[1]])}};
    if (rate == 0) {
        code = add_counts(placement, &within, &phases, error);
        keep_front(&within);
        rate = within.n > 0 ? within.of[within.n - 1].rps : 0;
        choices_free(&within);
    }
    if (code < 0 || rate == 0)
        return code;
    const int32_t counts[] = {replicas_for(rate, phases.goodput[0]),
                              replicas_for(rate, phases.goodput[1])};
    combine(placement, &phases, counts, parts);
    *rps = rate_of(&phases, counts);
    return 0;
}

static void find_segments(const struct placement *placement, const struct capacity_row *rows,
                          struct placed *parts, double *rps)
{
    const size_t best = choice_best(placement, rows, 0);
    if (best == SIZE_MAX)
        return;
    const double goodput = goodput_of(&rows[best]);
    const int32_t n = most_times(placement, best, goodput);
    repeat(placement, best, n, parts);
    *rps = n * goodput;
}

/* It may be on the front already. Beyond the budget there is none. */
static int mark_algorithm(const struct placement *placement, const struct capacity_row *rows,
                          struct choices *choices, struct ifl_error *error)
{
    struct placed parts[MAX_PLACED_POOLS] = {{0}};
    double rps = 0;
    int code = 0;
    if (is_apart(placement))
        code = find_apart(placement, rows, parts, &rps, error);
    else if (placement->config.search == PLACEMENT_SEGMENTS)
        find_segments(placement, rows, parts, &rps);
    if (code < 0 || rps == 0 || !placement_affords(placement, parts))
        return code;
    for (size_t i = 0; i < choices->n; i++)
        if (memcmp(choices->of[i].parts, parts, sizeof parts) == 0) {
            choices->of[i].by_algorithm = true;
            return 0;
        }
    code = add(placement, choices, parts, rps, error);
    if (code == 0)
        choices->of[choices->n - 1].by_algorithm = true;
    return code;
}

/* ---- the chosen one ---- */

static struct choice *cheapest_for(const struct choices *choices, double rps)
{
    for (size_t i = 0; i < choices->n; i++)
        if (choices->of[i].on_front && choices->of[i].rps >= rps * (1 - 1e-9))
            return &choices->of[i];
    return NULL;
}

static void choose(const struct placement *placement, struct choices *choices)
{
    const bool bounded = has_budget(placement);
    struct choice *chosen = NULL;
    if (placement->target_rps > 0)
        chosen = cheapest_for(choices, placement->target_rps);
    for (size_t i = 0; placement->target_rps == 0 && i < choices->n; i++) {
        struct choice *choice = &choices->of[i];
        if (choice->on_front &&
            (!chosen || (bounded ? choice->rps > chosen->rps
                                 : choice->rps / choice->cost > chosen->rps / chosen->cost)))
            chosen = choice;
    }
    if (chosen)
        chosen->chosen = true;
}

static void sort(struct choices *choices)
{
    if (choices->n > 1)
        gsl_heapsort(choices->of, choices->n, sizeof *choices->of, by_cost);
}

int choices_find(const struct placement *placement, const struct capacity_row *rows,
                 struct choices *choices, struct ifl_error *error)
{
    *choices = (struct choices){.priced = all_priced(placement)};
    int code = is_apart(placement) ? add_pairs(placement, rows, choices, error)
                                   : add_wholes(placement, rows, choices, error);
    for (size_t i = 0; i < choices->n; i++)
        choices->of[i].on_front = true;
    if (code == 0)
        choose(placement, choices);
    if (code == 0)
        code = mark_algorithm(placement, rows, choices, error);
    sort(choices);
    return code;
}

void choices_free(struct choices *choices)
{
    free(choices->of);
    choices->of = NULL;
    choices->n = choices->cap = 0;
}

struct choice *choices_chosen(const struct choices *choices)
{
    for (size_t i = 0; i < choices->n; i++)
        if (choices->of[i].chosen)
            return &choices->of[i];
    return NULL;
}

/* ---- one replica more ---- */

/* What a replica of that shape carries alone. */
static double goodput_alone(const struct placement *placement, const struct capacity_row *rows,
                            const struct placed *part, size_t pool)
{
    for (size_t i = 0; i < placement->n; i++) {
        const struct placed *of = &placement_at(placement, i)[pool];
        if (of->count > 0 && of->tensor == part->tensor && of->pipeline == part->pipeline)
            return goodput_of(&rows[i]);
    }
    return 0;
}

static size_t tightest(const struct placement *placement, const struct capacity_row *rows,
                       const struct placed *parts)
{
    size_t pool = 0;
    double least = INFINITY;
    for (size_t i = 0; i < placement->n_pools; i++) {
        const double rps = parts[i].count * goodput_alone(placement, rows, &parts[i], i);
        if (rps < least) {
            least = rps;
            pool = i;
        }
    }
    return pool;
}

bool choices_grow(const struct placement *placement, const struct capacity_row *rows,
                  struct choices *choices, int *code, struct ifl_error *error)
{
    struct choice *from = choices_chosen(choices);
    struct placed parts[MAX_PLACED_POOLS];
    *code = 0;
    if (!from || placement->config.search == PLACEMENT_TOGETHER)
        return false;
    memcpy(parts, from->parts, sizeof parts);
    if (is_apart(placement))
        parts[tightest(placement, rows, parts)].count++;
    for (size_t i = 0; i < placement->n_pools && !is_apart(placement); i++)
        parts[i].count++;
    if (!placement_affords(placement, parts))
        return false;
    from->chosen = false;
    *code = add(placement, choices, parts, from->rps, error);
    if (*code < 0)
        return false;
    struct choice *grown = &choices->of[choices->n - 1];
    memset(grown->parts + placement->n_pools, 0,
           (MAX_PLACED_POOLS - placement->n_pools) * sizeof *parts);
    grown->chosen = grown->grown = true;
    sort(choices);
    return true;
}
