#include "replica/adapters.h"

#include <stdlib.h>

#include "inflight/minmax.h"

/* Those of S-LoRA's server, and those of a vLLM without max_cpu_loras, are in host memory from the
 * start; a host with fewer slots than adapters begins empty. */
static bool begins_on_host(const struct adapters_options *options)
{
    return options->in_pool || options->host_slots == 0;
}

static size_t pool_blocks(const struct adapters_options *options)
{
    size_t n = 0;
    for (uint32_t i = 1; options->in_pool && i <= options->n; i++)
        n += (size_t)options->of[i].n_blocks;
    return n;
}

int adapters_create(struct adapters *adapters, const struct adapters_options *options)
{
    const size_t n = (size_t)options->n + 1;
    *adapters = (struct adapters){0};
    if (options->n == 0)
        return 0;
    adapters->fixed = *options;
    adapters->of = calloc(n, sizeof *adapters->of);
    adapters->step = calloc(n, sizeof *adapters->step);
    adapters->loads = calloc(n, sizeof *adapters->loads);
    adapters->numbers = calloc(pool_blocks(options) + 1, sizeof *adapters->numbers);
    if (!adapters->of || !adapters->step || !adapters->loads || !adapters->numbers)
        return IFL_E_NOMEM;
    uint32_t *numbers = adapters->numbers;
    for (uint32_t i = 1; i <= options->n; i++) {
        adapters->of[i].on_host = begins_on_host(options);
        adapters->of[i].blocks = numbers;
        numbers += options->in_pool ? options->of[i].n_blocks : 0;
    }
    return 0;
}

void adapters_destroy(struct adapters *adapters)
{
    free(adapters->of);
    free(adapters->step);
    free(adapters->loads);
    free(adapters->numbers);
    *adapters = (struct adapters){0};
}

static void load(struct adapters *adapters, uint32_t adapter)
{
    adapters->of[adapter].on_device = adapters->of[adapter].pending = true;
    adapters->loads[adapters->n_loads++] = adapter;
    adapters->n_on_device++;
}

/* What the next step would have brought is not wanted any more. */
static void forget_load(struct adapters *adapters, uint32_t adapter)
{
    size_t at = 0;
    while (adapters->loads[at] != adapter)
        at++;
    for (; at + 1 < adapters->n_loads; at++)
        adapters->loads[at] = adapters->loads[at + 1];
    adapters->n_loads--;
    adapters->of[adapter].pending = false;
}

void adapters_start(struct adapters *adapters, uint32_t adapter)
{
    if (adapter == 0 || adapters->of[adapter].n_users++ > 0)
        return;
    adapters->n_used++;
    if (!adapters->fixed.in_pool)
        return;
    adapters->n_used_blocks += adapters->fixed.of[adapter].n_blocks;
    load(adapters, adapter);
}

void adapters_stop(struct adapters *adapters, uint32_t adapter)
{
    if (adapter == 0)
        return;
    ifl_assert(adapters->of[adapter].n_users > 0);
    if (--adapters->of[adapter].n_users > 0)
        return;
    adapters->n_used--;
    if (!adapters->fixed.in_pool)
        return;
    adapters->n_used_blocks -= adapters->fixed.of[adapter].n_blocks;
    adapters->n_on_device--;
    adapters->of[adapter].on_device = false;
    if (adapters->of[adapter].pending)
        forget_load(adapters, adapter);
}

/* ---- the step that is described ---- */

void adapters_open_step(struct adapters *adapters, struct ifl_adapter_totals *totals)
{
    *totals = (struct ifl_adapter_totals){0};
    adapters->n_steps++;
    adapters->n_step = 0;
    adapters->last = 0;
}

void adapters_add(struct adapters *adapters, uint32_t adapter, int32_t n_tokens,
                  struct ifl_adapter_totals *totals)
{
    const bool goes_on = adapter == adapters->last;
    adapters->last = adapter;
    if (adapter == 0)
        return;
    struct adapter_state *state = &adapters->of[adapter];
    const int32_t rank = adapters->fixed.of[adapter].rank;
    totals->n_tokens += n_tokens;
    totals->rank_tokens += (int64_t)n_tokens * rank;
    totals->n_runs += !goes_on;
    if (state->used_in == adapters->n_steps)
        return;
    state->used_in = adapters->n_steps;
    adapters->step[adapters->n_step++] = adapter;
    adapters->most_step = ifl_max(adapters->most_step, adapters->n_step);
    totals->n++;
    totals->ranks += rank;
    if (rank > totals->most_rank)
        totals->most_rank = rank;
}

/* The least recently used that this step does not use; of several the one with the least number. 0:
 * there is none. `on_host`: of those in host memory. */
static uint32_t least_recent(const struct adapters *adapters, bool on_host)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i <= adapters->fixed.n; i++) {
        const struct adapter_state *state = &adapters->of[i];
        if ((on_host ? state->on_host : state->on_device) && state->used_in < adapters->n_steps &&
            (least == 0 || state->used_in < adapters->of[least].used_in))
            least = i;
    }
    return least;
}

static void leave_device(struct adapters *adapters, uint32_t adapter)
{
    adapters->n_on_device -= adapters->of[adapter].on_device;
    adapters->of[adapter].on_device = false;
}

/* From the disk: an adapter that leaves host memory leaves the device, too (vLLM). */
static void bring_to_host(struct adapters *adapters, uint32_t adapter,
                          struct ifl_adapter_totals *totals)
{
    if (adapters->of[adapter].on_host)
        return;
    const int32_t slots = adapters->fixed.host_slots;
    const uint32_t victim = adapters->n_on_host >= slots ? least_recent(adapters, true) : 0;
    if (victim > 0) {
        adapters->of[victim].on_host = false;
        adapters->n_on_host--;
        leave_device(adapters, victim);
    }
    adapters->of[adapter].on_host = true;
    adapters->n_on_host++;
    totals->n_disk_loads++;
    totals->disk_bytes += adapters->fixed.of[adapter].n_bytes;
}

/* A slot for one more. A step of more adapters than slots has all of them on the device; those that
 * the next step does not use leave then. */
static void free_a_slot(struct adapters *adapters)
{
    const int32_t slots = adapters->fixed.device_slots;
    uint32_t victim;
    while (slots > 0 && adapters->n_on_device >= slots &&
           (victim = least_recent(adapters, false)) > 0)
        leave_device(adapters, victim);
}

static void bring_to_slots(struct adapters *adapters, struct ifl_adapter_totals *totals)
{
    for (size_t i = 0; i < adapters->n_step; i++) {
        const uint32_t adapter = adapters->step[i];
        bring_to_host(adapters, adapter, totals);
        if (adapters->of[adapter].on_device)
            continue;
        free_a_slot(adapters);
        load(adapters, adapter);
    }
}

void adapters_close_step(struct adapters *adapters, struct ifl_adapter_totals *totals)
{
    if (!adapters->fixed.in_pool)
        bring_to_slots(adapters, totals);
    for (size_t i = 0; i < adapters->n_loads; i++) {
        totals->n_loads++;
        totals->load_bytes += adapters->fixed.of[adapters->loads[i]].n_bytes;
        adapters->of[adapters->loads[i]].pending = false;
    }
    adapters->n_loads = 0;
}
