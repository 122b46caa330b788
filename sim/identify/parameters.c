#include "identify/parameters.h"

#include <math.h>
#include <string.h>

#include "cost/collective.h"

const struct parameter_row parameter_rows[N_PARAMETERS] = {
    [HOST_STEP] = {"host.step_s", "ms", 1e3, ITSELF, false, 0, INFINITY},
    [HOST_SEQ] = {"host.seq_s", "us", 1e6, ITSELF, false, 0, INFINITY},
    [FRONT_REQUEST] = {"front_end.request_s", "ms", 1e3, ITSELF, false, 0, INFINITY},
    [FRONT_PROMPT_TOKEN] = {"front_end.prompt_token_s", "us", 1e6, ITSELF, false, 0, INFINITY},
    [BLOCKS] = {"num_blocks", "blocks", 1, LOGARITHM, true, 1, INFINITY},
    [ALLREDUCE_RATE] = {"allreduce.gb_per_s", "GB/s", 1, LOGARITHM, false, 1e-3, INFINITY},
    [EXCHANGE_RATE] = {"exchange.gb_per_s", "GB/s", 1, INVERSE, false, 1e-3, INFINITY},
    [HOST_LAYER] = {"host.layer_s", "us", 1e6, ITSELF, false, 0, INFINITY},
    [ALLREDUCE_LATENCY] = {"allreduce.latency_s", "us", 1e6, ITSELF, false, 0, INFINITY},
    [CACHE_HIT] = {"cache.hit_frac", "", 1, ITSELF, false, 0, 1, .is_asked = true},
    [PROMPT_FRAC] = {"kernels.prompt_frac", "", 1, LOGARITHM, false, 0.1, 10},
};

/* GB/s: a faster link is none that a recording could tell from it. */
static const double fastest_gb_per_s = 1e5;

double parameter_moved(enum parameter parameter, double value, double by)
{
    switch (parameter_rows[parameter].moved) {
    case LOGARITHM:
        return value * exp(by);
    case INVERSE:
        return 1 / fmax(1 / value + by, 1 / fastest_gb_per_s);
    default:
        return value + by;
    }
}

double parameter_distance(enum parameter parameter, double from, double to)
{
    switch (parameter_rows[parameter].moved) {
    case LOGARITHM:
        return log(to / from);
    case INVERSE:
        return 1 / to - 1 / from;
    default:
        return to - from;
    }
}

int parameter_find(const char *key)
{
    int i = N_PARAMETERS - 1;
    while (i >= 0 && strcmp(parameter_rows[i].key, key) != 0)
        i--;
    return i;
}

const char *parameter_acts_as(enum parameter parameter)
{
    return parameter == HOST_LAYER || parameter == ALLREDUCE_LATENCY ? parameter_rows[HOST_STEP].key
                                                                     : NULL;
}

static bool all_reduces(const struct machine *machine, const struct config *config,
                        struct lines_profile *lines)
{
    return config->tensor_parallel > 1 &&
           allreduce_lines(&machine->platform, config->tensor_parallel, lines);
}

/* What the exchange of experts goes by. The deployment's own replaces the profile's lines whole. */
static struct deployment_exchange exchange_of(const struct machine *machine,
                                              const struct config *config)
{
    struct deployment_exchange exchange = machine->platform.deployment.exchange;
    struct lines_profile lines;
    if (exchange.gb_per_s > 0 || config->data_parallel < 2 ||
        !allreduce_lines(&machine->platform, config->data_parallel, &lines))
        return exchange;
    exchange.gb_per_s = lines.bulk_gb_per_s > 0 ? lines.bulk_gb_per_s : lines.gb_per_s;
    exchange.latency_s = lines.latency_us * 1e-6;
    return exchange;
}

/* The rate of large messages, those of prompts. */
static double *rate_of(struct lines_profile *lines)
{
    return lines->bulk_gb_per_s > 0 ? &lines->bulk_gb_per_s : &lines->gb_per_s;
}

void parameters_of(const struct machine *machine, const struct config *config, int32_t n_blocks,
                   double value[N_PARAMETERS])
{
    const struct host_times *host = &machine->platform.deployment.host;
    struct lines_profile lines;
    memset(value, 0, N_PARAMETERS * sizeof *value);
    value[HOST_STEP] = host->step_s;
    value[HOST_SEQ] = host->seq_s;
    value[HOST_LAYER] = host->layer_s;
    value[FRONT_REQUEST] = machine->platform.deployment.front_end.request_s;
    value[FRONT_PROMPT_TOKEN] = machine->platform.deployment.front_end.prompt_token_s;
    value[BLOCKS] = n_blocks;
    if (all_reduces(machine, config, &lines)) {
        value[ALLREDUCE_RATE] = *rate_of(&lines);
        value[ALLREDUCE_LATENCY] = lines.latency_us * 1e-6;
    }
    value[EXCHANGE_RATE] = exchange_of(machine, config).gb_per_s;
    value[CACHE_HIT] = machine->platform.deployment.cache.hit_frac;
    value[PROMPT_FRAC] = machine->platform.deployment.kernels.prompt_frac;
    if (value[PROMPT_FRAC] <= 0)
        value[PROMPT_FRAC] = 1;
}

static void change_all_reduce(const double value[N_PARAMETERS], struct lines_profile *lines,
                              struct deployment_all_reduce *own)
{
    const double latency_us = value[ALLREDUCE_LATENCY] * 1e6;
    if (*rate_of(lines) == value[ALLREDUCE_RATE] && lines->latency_us == latency_us)
        return;
    *rate_of(lines) = value[ALLREDUCE_RATE];
    *own = (struct deployment_all_reduce){latency_us * 1e-6, lines->gb_per_s,
                                          lines->bulk_latency_us * 1e-6, lines->bulk_gb_per_s,
                                          lines->bulk_from_bytes};
}

void parameters_change(const double value[N_PARAMETERS], const struct config *config,
                       struct machine *machine)
{
    struct deployment *deployment = &machine->platform.deployment;
    struct lines_profile lines;
    deployment->front_end.request_s = fmax(0, value[FRONT_REQUEST]);
    deployment->front_end.prompt_token_s = fmax(0, value[FRONT_PROMPT_TOKEN]);
    deployment->host.step_s = value[HOST_STEP];
    deployment->host.seq_s = value[HOST_SEQ];
    deployment->host.layer_s = value[HOST_LAYER];
    deployment->cache.hit_frac = value[CACHE_HIT];
    deployment->kernels.prompt_frac = value[PROMPT_FRAC];
    if (all_reduces(machine, config, &lines))
        change_all_reduce(value, &lines, &deployment->all_reduce);
    const struct deployment_exchange exchange = exchange_of(machine, config);
    if (config->data_parallel > 1 && value[EXCHANGE_RATE] != exchange.gb_per_s) {
        deployment->exchange = exchange;
        deployment->exchange.gb_per_s = value[EXCHANGE_RATE];
    }
}

const char *parameter_field(enum parameter parameter, const struct deployment *deployment)
{
    if (parameter == ALLREDUCE_RATE)
        return deployment->all_reduce.bulk_gb_per_s > 0 ? "all_reduce.bulk_gb_per_s"
                                                        : "all_reduce.gb_per_s";
    return parameter == ALLREDUCE_LATENCY ? "all_reduce.latency_s" : parameter_rows[parameter].key;
}
