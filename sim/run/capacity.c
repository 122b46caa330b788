#include "run/capacity.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sort_double.h>
#include <math.h>
#include <stdlib.h>

#include "run/capacity_parts.h"

/* ---- the root of a margin ---- */

static double margin_at(double log_rate, void *context)
{
    struct search *search = context;
    const struct capacity_trial *trial = capacity_try(search, exp(log_rate), 0);
    return trial ? search->margin_of(trial) : 0;
}

struct bracket {
    double within_rps, beyond_rps; /* 0, INFINITY: none yet */
};

/* What earlier trials say: the lowest rate beyond the objectives, and the highest rate below
 * that. */
static struct bracket bracket_of(const struct search *search)
{
    const struct capacity *found = search->found;
    struct bracket bracket = {0, INFINITY};
    for (size_t i = 0; i < found->n_trials; i++)
        if (search->margin_of(&found->trials[i]) > 0)
            bracket.beyond_rps = fmin(bracket.beyond_rps, found->trials[i].rate_rps);
    for (size_t i = 0; i < found->n_trials; i++)
        if (found->trials[i].rate_rps < bracket.beyond_rps)
            bracket.within_rps = fmax(bracket.within_rps, found->trials[i].rate_rps);
    return bracket;
}

static double start_rps(const struct search *search)
{
    const struct config *config = &search->options->configs[0];
    return fmin(fmax(config->workload.arrivals.rate_rps, config->capacity.min_rate_rps),
                config->capacity.max_rate_rps);
}

/* The lowest and the highest rate are tried, too, before they are said to be the end. */
static enum capacity_status widen(struct search *search, struct bracket *bracket)
{
    const struct capacity_config *goals = &search->options->configs[0].capacity;
    *bracket = bracket_of(search);
    while (search->code == 0 && (bracket->within_rps == 0 || isinf(bracket->beyond_rps))) {
        double rate_rps = start_rps(search);
        if (bracket->beyond_rps <= goals->min_rate_rps)
            return CAPACITY_NONE;
        if (bracket->within_rps >= goals->max_rate_rps)
            return CAPACITY_UNBOUNDED;
        if (!isinf(bracket->beyond_rps))
            rate_rps = fmax(bracket->beyond_rps / 2, goals->min_rate_rps);
        else if (bracket->within_rps > 0)
            rate_rps = fmin(bracket->within_rps * 2, goals->max_rate_rps);
        capacity_try(search, rate_rps, 0);
        *bracket = bracket_of(search);
    }
    return CAPACITY_FOUND;
}

/* Trials until the bracket is as narrow as the tolerance, by bisection; Brent's method needs fewer.
 * `expected`: how many were left before. */
static unsigned long long foresee(const struct search *search, const struct bracket *bracket,
                                  unsigned long long expected)
{
    const double tolerance = search->options->configs[0].capacity.tolerance_frac;
    const double halvings =
        ceil(log2(log(bracket->beyond_rps / bracket->within_rps) / log1p(tolerance)));
    const unsigned long long n = halvings > 0 ? (unsigned long long)halvings : 0;
    if (search->options->trials)
        atomic_fetch_add(&search->options->trials->n_left, n - expected);
    return n;
}

static void close_in(const struct search *search, unsigned long long n)
{
    if (search->options->trials)
        atomic_fetch_add(&search->options->trials->n_closing, n);
}

/* Brent's method closes in on a root from one side. Once the root hardly moves, a rate on its other
 * side is tried. A margin that goes up and down has several roots: where the solver has found
 * another one than the bracket's, its rates are outside of the bracket, which is halved then. */
static void narrow(struct search *search, struct bracket *bracket)
{
    const double tolerance = search->options->configs[0].capacity.tolerance_frac;
    enum { MOST_OUTSIDE = 8 };
    int n_outside = 0;
    double log_root = INFINITY;
    gsl_function function = {margin_at, search};
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    if (!solver) {
        search->code = ifl_fail_nomem(search->error);
        return;
    }
    gsl_root_fsolver_set(solver, &function, log(bracket->within_rps), log(bracket->beyond_rps));
    unsigned long long n_left = foresee(search, bracket, 0);
    close_in(search, 1);
    while (search->code == 0 && bracket->beyond_rps > bracket->within_rps * (1 + tolerance) &&
           gsl_root_fsolver_iterate(solver) == GSL_SUCCESS) {
        const double log_last = log_root, aside = log1p(tolerance / 2);
        const size_t n_trials = search->found->n_trials;
        const struct bracket last = *bracket;
        log_root = gsl_root_fsolver_root(solver);
        if (fabs(log_root - log_last) < tolerance)
            margin_at(margin_at(log_root, search) > 0 ? log_root - aside : log_root + aside,
                      search);
        if (search->found->n_trials == n_trials || n_outside >= MOST_OUTSIDE)
            margin_at(log(bracket->within_rps * bracket->beyond_rps) / 2, search);
        *bracket = bracket_of(search);
        n_outside +=
            bracket->within_rps == last.within_rps && bracket->beyond_rps == last.beyond_rps;
        n_left = foresee(search, bracket, n_left);
    }
    if (search->options->trials)
        atomic_fetch_sub(&search->options->trials->n_left, n_left);
    close_in(search, -1ULL);
    gsl_root_fsolver_free(solver);
}

/* The highest rate within the objectives, to the tolerance, if *status is CAPACITY_FOUND; else the
 * highest rate that was tried and within, or 0. */
static double root_rps(struct search *search, double (*margin_of)(const struct capacity_trial *),
                       enum capacity_status *status)
{
    struct bracket bracket;
    search->margin_of = margin_of;
    *status = widen(search, &bracket);
    if (search->code == 0 && *status == CAPACITY_FOUND)
        narrow(search, &bracket);
    return bracket.within_rps;
}

static size_t place_of(const struct search *search, double rate_rps)
{
    const struct capacity_trial *trial = capacity_known(search, rate_rps, 0);
    return trial ? (size_t)(trial - search->found->trials) : 0;
}

/* The objectives that the lowest rate beyond the capacity misses. */
static uint32_t missed_above(const struct capacity *found)
{
    const struct capacity_trial *next = NULL;
    for (size_t i = 0; i < found->n_trials; i++) {
        const struct capacity_trial *trial = &found->trials[i];
        if (trial->rate_rps > found->rps && trial->margin > 0 &&
            (!next || trial->rate_rps < next->rate_rps))
            next = trial;
    }
    return next ? capacity_missed(found, next) : 0;
}

static void find_root(struct search *search)
{
    struct capacity *found = search->found;
    enum capacity_status status;
    found->rps = root_rps(search, capacity_margin, &found->status);
    found->at = place_of(search, found->rps);
    found->binding = missed_above(found);
    if (search->options->n_replications < 2 || search->member > 0 ||
        found->status != CAPACITY_FOUND)
        return;
    const double low_rps = root_rps(search, capacity_margin_high, &status);
    found->low_rps = status == CAPACITY_FOUND ? low_rps : 0;
    const double high_rps = root_rps(search, capacity_margin_low, &status);
    found->high_rps = status == CAPACITY_FOUND ? high_rps : (double)NAN;
}

/* ---- the most goodput ---- */

/* True if the first rate has the smaller margin: the more goodput. */
static bool is_better(struct search *search, double rate_rps, double than_rps)
{
    const double of_rate = margin_at(log(rate_rps), search);
    return of_rate < margin_at(log(than_rps), search);
}

/* Halves of the rate, down to the goodput that was found: a lower rate has fewer requests than
 * that. Far above saturation the goodput hardly depends on the rate, so that a rate that is no
 * better than the last one says nothing of those below. */
static double best_below(struct search *search, double rate_rps)
{
    const struct capacity_config *goals = &search->options->configs[0].capacity;
    double best_rps = rate_rps;
    while (search->code == 0 && rate_rps / 2 >= goals->min_rate_rps) {
        const struct capacity_trial *best = capacity_try(search, best_rps, 0);
        if (!best || rate_rps / 2 < best->goodput_rps.mean)
            break;
        rate_rps /= 2;
        if (is_better(search, rate_rps, best_rps))
            best_rps = rate_rps;
    }
    return best_rps;
}

/* Three rates of which the middle one is the best. */
static enum capacity_status straddle(struct search *search, double rps[3])
{
    const struct capacity_config *goals = &search->options->configs[0].capacity;
    double rate_rps = best_below(search, start_rps(search));
    while (search->code == 0 && rate_rps < goals->max_rate_rps &&
           is_better(search, fmin(rate_rps * 2, goals->max_rate_rps), rate_rps))
        rate_rps = fmin(rate_rps * 2, goals->max_rate_rps);
    if (rate_rps >= goals->max_rate_rps)
        return CAPACITY_UNBOUNDED;
    rps[0] = fmax(rate_rps / 2, goals->min_rate_rps);
    rps[1] = rate_rps;
    rps[2] = fmin(rate_rps * 2, goals->max_rate_rps);
    return CAPACITY_FOUND;
}

/* Where the middle one is an end of the range, or no better than a neighbour, it stays the best. */
static void minimise(struct search *search, const double rps[3])
{
    /* Near its maximum the goodput is flat: a share t of it corresponds to about sqrt(t) of the
     * rate. */
    const double tolerance = sqrt(search->options->configs[0].capacity.tolerance_frac) / 2;
    gsl_function function = {margin_at, search};
    gsl_min_fminimizer *minimiser = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
    if (!minimiser) {
        search->code = ifl_fail_nomem(search->error);
        return;
    }
    if (gsl_min_fminimizer_set(minimiser, &function, log(rps[1]), log(rps[0]), log(rps[2])) ==
        GSL_SUCCESS)
        while (search->code == 0 &&
               gsl_min_fminimizer_x_upper(minimiser) - gsl_min_fminimizer_x_lower(minimiser) >
                   tolerance &&
               gsl_min_fminimizer_iterate(minimiser) == GSL_SUCCESS)
            continue;
    gsl_min_fminimizer_free(minimiser);
}

static void find_best(struct search *search)
{
    struct capacity *found = search->found;
    double rps[3];
    search->margin_of = capacity_margin;
    found->status = straddle(search, rps);
    if (search->code == 0 && found->status == CAPACITY_FOUND)
        minimise(search, rps);
    for (size_t i = 0; i < found->n_trials; i++)
        if (found->trials[i].margin < found->trials[found->at].margin)
            found->at = i;
    if (search->code < 0)
        return;
    const struct ifl_interval *goodput = &found->trials[found->at].goodput_rps;
    if (!(goodput->mean > 0))
        found->status = CAPACITY_NONE;
    found->rps = goodput->mean;
    found->low_rps = goodput->mean - goodput->half_width;
    found->high_rps = goodput->mean + goodput->half_width;
}

/* `start`: replicas with which the search for a target begins. */
static void find(struct search *search, int32_t start)
{
    const struct capacity_config *goals = &search->options->configs[0].capacity;
    *search->found = (struct capacity){.low_rps = (double)NAN,
                                       .high_rps = (double)NAN,
                                       .members_low_rps = (double)NAN,
                                       .members_high_rps = (double)NAN};
    search->found->n_objectives = objectives_asked(goals, search->found->objectives);
    if (goals->target_rps > 0)
        capacity_find_replicas(search, start);
    else if (goals->criterion == CAPACITY_GOODPUT)
        find_best(search);
    else
        find_root(search);
}

/* ---- the ensemble ---- */

static size_t count_members(const struct capacity_options *options)
{
    return options->members ? (size_t)options->configs[0].cost.ensemble : 0;
}

static void find_members(struct search *search, struct capacity *scratch)
{
    struct capacity *const nominal = search->found;
    const size_t n = count_members(search->options);
    search->found = scratch;
    for (size_t i = 0; i < n && search->code == 0; i++) {
        search->member = i + 1;
        find(search, nominal->replicas);
        search->options->members[i] = (struct capacity_member){
            .status = scratch->status,
            .crossing = scratch->status == CAPACITY_FOUND ? scratch->crossing : (double)INFINITY,
            .rps = scratch->status == CAPACITY_FOUND       ? scratch->rps
                   : scratch->status == CAPACITY_UNBOUNDED ? (double)INFINITY
                                                           : 0,
            .n_trials = scratch->n_trials};
    }
    search->found = nominal;
    nominal->n_members = n;
}

/* The distance of an end of the interval from the capacity, if two independent causes move it. An
 * end that is on the other side, or not known, has distance 0. */
static double reach(double of_replications, double of_members)
{
    return hypot(fmax(of_replications, 0), fmax(of_members, 0));
}

static void widen_interval(struct capacity *found, const struct capacity_member *members,
                           size_t n_replications, double *rps)
{
    const size_t n = found->n_members;
    const bool is_open = n_replications > 1 && isnan(found->high_rps); /* beyond max_rate_rps */
    for (size_t i = 0; i < n; i++)
        rps[i] = members[i].rps;
    gsl_sort(rps, 1, n);
    found->members_low_rps = ifl_ensemble_quantile(rps, n, 0.025);
    found->members_high_rps = ifl_ensemble_quantile(rps, n, 0.975);
    const double below = reach(found->rps - found->low_rps, found->rps - found->members_low_rps);
    const double above = reach(found->high_rps - found->rps, found->members_high_rps - found->rps);
    found->low_rps = fmax(found->rps - below, 0);
    found->high_rps = is_open || isinf(above) ? (double)NAN : found->rps + above;
}

/* A crossing as the replicas that it takes; 0 where no number is enough. */
static int32_t whole(double crossing)
{
    return isfinite(crossing) ? (int32_t)fmax(ceil(crossing - 1e-9), 1) : 0;
}

/* As widen_interval, of the crossings: fewer replicas are the better end. */
static void widen_replicas(struct capacity *found, const struct capacity_member *members,
                           double *crossings)
{
    const size_t n = found->n_members;
    const bool is_open = isinf(found->high_crossing);
    for (size_t i = 0; i < n; i++)
        crossings[i] = members[i].crossing;
    gsl_sort(crossings, 1, n);
    const double low = ifl_ensemble_quantile(crossings, n, 0.025),
                 high = ifl_ensemble_quantile(crossings, n, 0.975);
    const double below = reach(found->crossing - found->low_crossing, found->crossing - low);
    const double above = reach(found->high_crossing - found->crossing, high - found->crossing);
    found->members_low_replicas = whole(low);
    found->members_high_replicas = whole(high);
    found->low_replicas = whole(found->crossing - below);
    found->high_replicas = is_open ? 0 : whole(found->crossing + above);
}

static void add_ensemble(struct search *search)
{
    const size_t n = count_members(search->options);
    if (n == 0)
        return;
    struct capacity *scratch = malloc(sizeof *scratch);
    double *rps = calloc(n, sizeof *rps);
    if (!scratch || !rps)
        search->code = ifl_fail_nomem(search->error);
    else
        find_members(search, scratch);
    if (search->code == 0 && search->found->replicas > 0)
        widen_replicas(search->found, search->options->members, rps);
    else if (search->code == 0)
        widen_interval(search->found, search->options->members, search->options->n_replications,
                       rps);
    free(scratch);
    free(rps);
}

/* GSL tells which error handler is set only by setting another one: its "off", if that was set. */
IFL_FOR_ASSERTS static inline bool gsl_does_not_abort(void)
{
    gsl_error_handler_t *const was = gsl_set_error_handler_off();
    return was == gsl_set_error_handler_off();
}

static int search_begin(struct search *search, const struct capacity_options *options,
                        struct capacity *capacity, struct ifl_error *error)
{
    const size_t n = options->n_replications;
    *search = (struct search){.options = options,
                              .found = capacity,
                              .summaries = calloc(n, sizeof *search->summaries),
                              .sample = calloc(n, sizeof *search->sample),
                              .error = error};
    if (!search->summaries || !search->sample)
        search->code = ifl_fail_nomem(error);
    return search->code;
}

static int search_end(struct search *search)
{
    free(search->summaries);
    free(search->sample);
    return search->code;
}

int capacity_find(const struct capacity_options *options, struct capacity *capacity,
                  struct ifl_error *error)
{
    ifl_assert(options->n_threads >= 1 && options->n_replications >= 1);
    ifl_assert(options->members || options->configs->cost.ensemble == 0);
    ifl_assert(gsl_does_not_abort());
    struct search search;
    if (search_begin(&search, options, capacity, error) == 0)
        find(&search, options->configs[0].replicas);
    if (search.code == 0 && capacity->status == CAPACITY_FOUND && count_members(options) > 0)
        add_ensemble(&search);
    return search_end(&search);
}

int capacity_fly_at(const struct capacity_options *options, double rate_rps,
                    struct capacity *capacity, struct ifl_error *error)
{
    struct search search;
    *capacity = (struct capacity){0};
    capacity->n_objectives = objectives_asked(&options->configs[0].capacity, capacity->objectives);
    if (search_begin(&search, options, capacity, error) == 0)
        capacity_try(&search, rate_rps, 0);
    return search_end(&search);
}
