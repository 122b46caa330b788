/* Sums over time of what steps hold and do. */
#include "record/summary.h"

#include "inflight/minmax.h"

void step_sums_add(struct step_sums *sums, const struct ifl_step_record *step)
{
    const int64_t lasted_ns = step->duration_ns, end_ns = step->start_ns + lasted_ns;
    sums->n_steps++;
    sums->last_end_ns = ifl_max(sums->last_end_ns, end_ns);
    exact_add(&sums->time_ns, lasted_ns, 1);
    exact_add(&sums->seqs_ns, lasted_ns, (int64_t)step->prefill_seqs + step->decode_seqs);
    exact_add(&sums->token_slots_ns, lasted_ns, step->kv_token_slots);
    exact_add(&sums->reserved_slots_ns, lasted_ns, step->kv_reserved_slots);
    exact_add(&sums->internal_slots_ns, lasted_ns, step->kv_internal_slots);
    exact_add(&sums->pool_slots_ns, lasted_ns, step->kv_pool_slots);
    exact_add(&sums->used_blocks_ns, lasted_ns, step->kv_used_blocks);
    exact_add(&sums->shared_blocks_ns, lasted_ns, step->kv_shared_blocks);
    if (IFL_RARE(step->adapters > 0 || step->adapter_loads > 0)) {
        exact_add(&sums->adapters_ns, lasted_ns, step->adapters);
        sums->adapter_loads += (uint64_t)step->adapter_loads;
    }
    if (step->waiting > 0)
        pressure_add(&sums->pressure, step, lasted_ns, step->kv_used_blocks);
}

int64_t step_sums_lasted_ns(const struct ifl_stretch_record *of)
{
    return of->end_ns[of->n - 1] - of->first->start_ns;
}

/* The integral over time of a quantity that is 0 in the first step and grows by one with each
 * further step. In 64 bits: see fits_64_bits. */
static int64_t sum_growth_ns(const int64_t *end_ns, size_t n)
{
    const int64_t last_ns = end_ns[n - 1];
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += last_ns - end_ns[i];
    return sum;
}

/* The integrals over time of used blocks and of slots that are never used. */
static void sum_uses(const struct ifl_stretch_record *of, struct exact_sum *used_ns,
                     struct exact_sum *internal_ns)
{
    int64_t from_ns = of->first->start_ns;
    for (const struct ifl_pool_use *use = of->use; use < of->use + of->n_uses; use++) {
        const int64_t until_ns = of->end_ns[use->until - 1];
        exact_add(used_ns, until_ns - from_ns, use->used_blocks);
        exact_add(internal_ns, until_ns - from_ns, use->internal_slots);
        from_ns = until_ns;
    }
}

/* Adds the integrals over the stretch:
 * - constants, and pool uses that change at some steps: value times duration;
 * - token slots, which grow by decode_seqs - full_seqs with each step: sum_growth_ns;
 * - reserved slots: held slots minus token slots minus internal slots. */
void step_sums_add_stretch(struct step_sums *sums, const struct ifl_stretch_record *of)
{
    const struct ifl_step_record *first = of->first;
    const int64_t stood_ns = step_sums_lasted_ns(of), end_ns = first->start_ns + stood_ns;
    struct exact_sum token = {0}, used = {0}, internal = {0}, held;
    exact_add(&token, sum_growth_ns(of->end_ns, of->n), first->decode_seqs - first->full_seqs);
    exact_add(&token, stood_ns, first->kv_token_slots);
    sum_uses(of, &used, &internal);
    held = used;
    exact_add(&held, stood_ns, -of->slack_blocks);
    held.of *= of->block_tokens;
    sums->n_steps += of->n;
    sums->last_end_ns = ifl_max(sums->last_end_ns, end_ns);
    exact_add(&sums->time_ns, stood_ns, 1);
    exact_add(&sums->seqs_ns, stood_ns, first->decode_seqs);
    exact_add(&sums->pool_slots_ns, stood_ns, first->kv_pool_slots);
    exact_add(&sums->shared_blocks_ns, stood_ns, first->kv_shared_blocks);
    if (IFL_RARE(first->adapters > 0)) /* none is loaded in steps that repeat one another */
        exact_add(&sums->adapters_ns, stood_ns, first->adapters);
    if (first->waiting > 0)
        pressure_add_stretch(&sums->pressure, of);
    sums->token_slots_ns.of += token.of;
    sums->used_blocks_ns.of += used.of;
    sums->internal_slots_ns.of += internal.of;
    sums->reserved_slots_ns.of += held.of - token.of - internal.of;
}
