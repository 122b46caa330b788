#include "record/pressure.h"

/* Prompts seldom fill a budget to the last token, and the last blocks seldom hold a request: 15 of
 * 16 parts count as full. */
static bool is_full(int64_t used, int64_t most)
{
    return used * 16 >= most * 15;
}

/* Tokens of an earlier most that is not close to a new one were no limit. */
static void add_tokens(struct pressure *pressure, int32_t tokens, int64_t lasted_ns)
{
    if (tokens > pressure->most_tokens) {
        if (!is_full(pressure->most_tokens, tokens))
            pressure->at_tokens_ns = 0;
        pressure->most_tokens = tokens;
    }
    if (is_full(tokens, pressure->most_tokens))
        pressure->at_tokens_ns += lasted_ns;
}

static void add_running(struct pressure *pressure, int32_t running, int64_t lasted_ns)
{
    if (running > pressure->most_running) {
        pressure->most_running = running;
        pressure->at_seats_ns = 0;
    }
    if (running == pressure->most_running)
        pressure->at_seats_ns += lasted_ns;
}

/* All but the blocks, of steps that repeat one another. */
static void add_alike(struct pressure *pressure, const struct ifl_step_record *step,
                      int64_t lasted_ns)
{
    pressure->waiting_ns += lasted_ns;
    add_running(pressure, step->running, lasted_ns);
    add_tokens(pressure, step->prefill_tokens + step->decode_tokens, lasted_ns);
}

static void add_blocks(struct pressure *pressure, int32_t used, int32_t total, int64_t lasted_ns)
{
    if (is_full(used, total))
        pressure->at_blocks_ns += lasted_ns;
}

IFL_APART void pressure_add(struct pressure *pressure, const struct ifl_step_record *step,
                            int64_t lasted_ns, int32_t used_blocks)
{
    add_alike(pressure, step, lasted_ns);
    add_blocks(pressure, used_blocks, step->kv_total_blocks, lasted_ns);
}

IFL_APART void pressure_add_stretch(struct pressure *pressure, const struct ifl_stretch_record *of)
{
    int64_t from_ns = of->first->start_ns;
    add_alike(pressure, of->first, of->end_ns[of->n - 1] - from_ns);
    for (const struct ifl_pool_use *use = of->use; use < of->use + of->n_uses; use++) {
        const int64_t until_ns = of->end_ns[use->until - 1];
        add_blocks(pressure, use->used_blocks, of->first->kv_total_blocks, until_ns - from_ns);
        from_ns = until_ns;
    }
}

struct ifl_pressure pressure_sum_up(const struct pressure *of)
{
    const double all_ns = of->waiting_ns > 0 ? (double)of->waiting_ns : 1;
    return (struct ifl_pressure){.waiting_s = ifl_s_from_ns(of->waiting_ns),
                                 .most_running = of->most_running,
                                 .most_tokens = of->most_tokens,
                                 .seats_frac = (double)of->at_seats_ns / all_ns,
                                 .tokens_frac = (double)of->at_tokens_ns / all_ns,
                                 .blocks_frac = (double)of->at_blocks_ns / all_ns};
}
