/* The links between replicas and their hosts, if swaps overlap steps (fleet/swap_link.h). */
#include <math.h>
#include <stdlib.h>

#include "cost/kernels.h"
#include "run/point_parts.h"

/* As in the duration of a step: the ranks copy their parts side by side. */
static int64_t block_ns(const struct machine *machine, const struct config *config,
                        enum swap_direction direction)
{
    if (config->serving.swap_block_ns > 0 || !machine->has_model || !machine->has_hardware)
        return config->serving.swap_block_ns;
    const double bytes =
        (double)model_kv_bytes_per_token(&machine->stage, config->tensor_parallel) *
        config->serving.kv.block_tokens;
    return llround(swap_s(&machine->platform.hardware, direction, 1, bytes) * 1e9);
}

int point_create_swaps(const struct config *config, struct point *point, struct ifl_error *error)
{
    if (!config_swaps_apart_anywhere(config))
        return 0;
    point->swap_links = calloc(point->n_pools, sizeof *point->swap_links);
    if (!point->swap_links)
        return ifl_fail_nomem(error);
    for (size_t p = 0; p < point->n_pools; p++) {
        const struct config *of = config_of_pool(config, p);
        const struct machine *machine = &point->pools[p].machine;
        point->swap_links[p] = (struct swap_link){
            .out_ns = block_ns(machine, of, SWAP_OUT),
            .in_ns = block_ns(machine, of, SWAP_IN),
            .block_bytes = machine_kv_moved(machine, of).token_bytes * of->serving.kv.block_tokens};
    }
    return 0;
}
