/* Runs points again: as members of an ensemble, and for comparison in the checking mode. */
#include <stdlib.h>

#include "run/point_parts.h"

/* ---- an ensemble: the point again, with costs drawn from what their fit leaves open ---- */

int point_fly_ensemble(const struct point_options *options, const struct point_result *nominal,
                       struct ifl_error *error)
{
    const size_t n = (size_t)options->config->cost.ensemble;
    struct point_options silent = {
        .config = options->config,
        .point = options->point,
        .member.seed = options->config->workload.arrivals.seed,
        .traces = options->traces,
        .profiles = options->profiles,
        .stop = options->stop,
    };
    struct ifl_summary *members = calloc(n + 1, sizeof *members);
    const struct ifl_ensemble ensemble = {options->point, &nominal->summary, members, n};
    struct point_result result;
    int rc = members ? 0 : ifl_fail_nomem(error);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        silent.member.number = i + 1;
        rc = point_fly_member(&silent, &result, error);
        members[i] = result.summary;
    }
    if (rc == 0)
        rc = ifl_write_intervals(&ensemble, options->intervals_path, error);
    free(members);
    return rc;
}

/* ---- the checking mode ---- */

bool point_is_compared(const struct point_options *options)
{
    const struct config *config = options->config;
    return config->serving.check_steady && config->executor == EXECUTOR_SIM && !options->source &&
           config->cost.model != COST_RECORDED;
}

/* The mode hands each step over by itself, so in it a module may well count calls in place of
 * steps. The point is flown once more, as it is without the mode. */
int point_compare(const struct point_options *options, const struct ifl_summary *checked,
                  struct ifl_error *error)
{
    struct config config = *options->config;
    const struct point_options silent = {
        .config = &config,
        .point = options->point,
        .trial = options->trial,
        .traces = options->traces,
        .profiles = options->profiles,
        .stop = options->stop,
    };
    struct point_result result;
    config.serving.check_steady = false;
    config.serving.steady_runs = true;
    const int rc = point_fly_member(&silent, &result, error);
    return rc == 0 ? point_compare_runs(options, checked, &result.summary, error) : rc;
}
