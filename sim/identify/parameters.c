#include "identify/parameters.h"

#include <math.h>
#include <string.h>

const struct parameter_row parameter_rows[N_PARAMETERS] = {
    [HOST_STEP] = {"host.step_s", "ms", 1e3, false, false, 0},
    [HOST_SEQ] = {"host.seq_s", "us", 1e6, false, false, 0},
    [FRONT_REQUEST] = {"front_end.request_s", "ms", 1e3, false, false, 0},
    [FRONT_PROMPT_TOKEN] = {"front_end.prompt_token_s", "us", 1e6, false, false, 0},
    [BLOCKS] = {"num_blocks", "blocks", 1, true, true, 1},
    [ALLREDUCE_RATE] = {"allreduce.gb_per_s", "GB/s", 1, true, false, 1e-3},
    [HOST_LAYER] = {"host.layer_s", "us", 1e6, false, false, 0},
    [ALLREDUCE_LATENCY] = {"allreduce.latency_s", "us", 1e6, false, false, 0},
};

int parameter_find(const char *key)
{
    int i = N_PARAMETERS - 1;
    while (i >= 0 && strcmp(parameter_rows[i].key, key) != 0)
        i--;
    return i;
}

static struct lines_profile *allreduce(const struct machine *machine, const struct config *config)
{
    const struct platform *platform = &machine->platform;
    const int32_t ranks = config->tensor_parallel;
    return ranks > 1 ? (struct lines_profile *)(uintptr_t)hardware_allreduce(
                           &platform->hardware, platform->deployment.host.eager, ranks)
                     : NULL;
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
    struct lines_profile *lines = allreduce(machine, config);
    memset(value, 0, N_PARAMETERS * sizeof *value);
    value[HOST_STEP] = host->step_s;
    value[HOST_SEQ] = host->seq_s;
    value[HOST_LAYER] = host->layer_s;
    value[FRONT_REQUEST] = machine->platform.deployment.front_end.request_s;
    value[FRONT_PROMPT_TOKEN] = machine->platform.deployment.front_end.prompt_token_s;
    value[BLOCKS] = n_blocks;
    if (lines) {
        value[ALLREDUCE_RATE] = *rate_of(lines);
        value[ALLREDUCE_LATENCY] = lines->latency_us * 1e-6;
    }
}

void parameters_change(const double value[N_PARAMETERS], const struct config *config,
                       struct machine *machine)
{
    struct host_times *host = &machine->platform.deployment.host;
    struct front_end *front = &machine->platform.deployment.front_end;
    struct lines_profile *lines = allreduce(machine, config);
    front->request_s = fmax(0, value[FRONT_REQUEST]);
    front->prompt_token_s = fmax(0, value[FRONT_PROMPT_TOKEN]);
    host->step_s = value[HOST_STEP];
    host->seq_s = value[HOST_SEQ];
    host->layer_s = value[HOST_LAYER];
    if (lines) {
        *rate_of(lines) = value[ALLREDUCE_RATE];
        lines->latency_us = value[ALLREDUCE_LATENCY] * 1e6;
    }
}
