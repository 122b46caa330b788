#include "cli/capacity_check.h"

#include <math.h>

#include "run/objectives.h"

static int fail_key(const struct config *config, const char *text, struct ifl_error *error)
{
    return ifl_fail_at(error, config->path, 0, 0, "%s", text);
}

static int check_prices(const struct config *config, struct ifl_error *error)
{
    const struct gpu_rates *prices = &config->capacity.usd_per_gpu_hour;
    for (size_t i = 0; i < config_n_pools(config); i++) {
        const char *hardware = config_of_pool(config, i)->hardware;
        if (prices->n > 0 && hardware[0] && isnan(gpu_rate_of(prices, hardware)))
            return ifl_fail_at(error, config->path, 0, 0,
                               "capacity.usd_per_gpu_hour has no price of %s, expected one of "
                               "every hardware, or none at all",
                               hardware);
    }
    return 0;
}

static int check_numbers(const struct config *config, struct ifl_error *error)
{
    const struct capacity_config *of = &config->capacity;
    if (of->min_rate_rps > of->max_rate_rps)
        return ifl_fail_at(error, config->path, 0, 0,
                           "capacity.min_rate_rps is %g, expected at most max_rate_rps, %g",
                           of->min_rate_rps, of->max_rate_rps);
    return check_prices(config, error);
}

static bool says_slo(const struct config *config)
{
    return config->ttft_slo_s > 0 || config->tpot_slo_s > 0;
}

static int check_objectives(const struct config *config, struct ifl_error *error)
{
    const struct objectives *of = &config->capacity.objectives;
    struct objective asked[MAX_OBJECTIVES];
    const size_t n = objectives_asked(&config->capacity, asked);
    const bool shares = of->attainment_frac > 0 || of->client_attainment_frac > 0;
    if (n == 1 && of->finished_frac == 0)
        return fail_key(config,
                        "capacity.objectives is missing or empty, expected a limit such as "
                        "p95_ttft_s where capacity.criterion is objectives",
                        error);
    if (shares && !says_slo(config))
        return fail_key(config,
                        "slo.ttft_s and slo.tpot_s are missing, expected at least one where "
                        "capacity.objectives asks for attainment",
                        error);
    return 0;
}

static int check_target(const struct config *config, struct ifl_error *error)
{
    if (config->capacity.target_rps == 0)
        return 0;
    if (config->capacity.criterion == CAPACITY_GOODPUT)
        return fail_key(config,
                        "capacity.criterion is goodput, which is no limit, expected another one, "
                        "or capacity.objectives, where there is a capacity.target_rps",
                        error);
    if (config->n_pools > 0)
        return fail_key(config,
                        "cluster.pools stand beside capacity.target_rps, which searches the number "
                        "of one kind of replica, expected one of the two",
                        error);
    if (config->replicas > config->capacity.max_replicas)
        return ifl_fail_at(error, config->path, 0, 0,
                           "capacity.max_replicas is %d, expected at least cluster.replicas, %d, "
                           "where the search begins",
                           config->capacity.max_replicas, config->replicas);
    return 0;
}

int capacity_check(const struct config *config, struct ifl_error *error)
{
    const struct ifl_arrivals *arrivals = &config->workload.arrivals;
    const enum capacity_criterion criterion = config->capacity.criterion;
    if (config->executor != EXECUTOR_SIM)
        return fail_key(config, "executor is not sim, expected sim where capacity is searched",
                        error);
    if (arrivals->process != IFL_ARRIVE_POISSON && arrivals->process != IFL_ARRIVE_GAMMA &&
        arrivals->process != IFL_ARRIVE_CONSTANT)
        return fail_key(config,
                        "workload.arrivals.process has no rate, expected poisson, gamma or "
                        "constant where capacity is searched",
                        error);
    if (arrivals->n_pieces)
        return fail_key(config, "workload.arrivals.pieces fix the rate that is searched", error);
    if (criterion == CAPACITY_SARATHI && config->capacity.p99_tbt_s <= 0)
        return fail_key(config, "capacity.p99_tbt_s is missing or 0, expected above 0", error);
    if ((criterion == CAPACITY_DISTSERVE || criterion == CAPACITY_GOODPUT) && !says_slo(config))
        return fail_key(config, "slo.ttft_s and slo.tpot_s are missing, expected at least one",
                        error);
    if (criterion == CAPACITY_OBJECTIVES && check_objectives(config, error) < 0)
        return error->code;
    return check_target(config, error) < 0 ? error->code : check_numbers(config, error);
}
