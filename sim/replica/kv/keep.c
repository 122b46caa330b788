#include "replica/kv/keep.h"

#include "inflight/minmax.h"

/* Of the first layer and of all layers in the mean, the window included. A prompt of less than
 * twice the budget is cut alike in all layers. Budgets fall by a whole number of tokens a layer. */
struct pyramid {
    int32_t first, mean;
};

static struct pyramid pyramid_of(const struct keep *keep, int32_t n_tokens)
{
    const int32_t window = keep->window_tokens, voted = keep->budget_tokens - window;
    if (n_tokens < 2 * voted)
        return (struct pyramid){keep->budget_tokens, keep->budget_tokens};
    const int32_t least = voted / keep->beta;
    const int32_t most = ifl_min(2 * voted - least, n_tokens - window);
    const int32_t n_steps = keep->n_layers - 1;
    if (n_steps < 1)
        return (struct pyramid){most + window, keep->budget_tokens};
    const int32_t fall = (most - (2 * voted - most)) / n_steps;
    return (struct pyramid){most + window, most + window - (int32_t)((int64_t)fall * n_steps / 2)};
}

static struct kept all_of(int32_t n_tokens, struct kv_block block)
{
    return (struct kept){
        .n_slots = n_tokens, .n_blocks = kv_blocks_for(n_tokens, block), .most_slots = INT32_MAX};
}

/* Blocks of the sinks and of the window behind them, which may meet. */
static int32_t blocks_around_gap(const struct keep *keep, int32_t n_tokens, struct kv_block block)
{
    const int32_t n_last = keep->budget_tokens - keep->sink_tokens;
    const int32_t before = kv_blocks_for(keep->sink_tokens, block);
    const int32_t from = (int32_t)kv_full_blocks((uint32_t)(n_tokens - n_last), block);
    return kv_blocks_for(n_tokens, block) - ifl_max(from - before, 0);
}

static int32_t n_moved(const struct keep *keep, const struct kept *kept)
{
    const int32_t n_first = keep->method == KEEP_STREAMING ? keep->sink_tokens : 0;
    return keep->place == KEEP_GATHERED ? kept->n_slots - kept->n_unread - n_first : 0;
}

struct kept keep_of_prompt(const struct keep *keep, int32_t n_tokens, struct kv_block block)
{
    struct kept kept = all_of(n_tokens, block);
    const bool each_step = keep_each_step(keep), in_place = keep->place == KEEP_IN_PLACE;
    if (keep->method == KEEP_ALL || keep->budget_tokens == 0)
        return kept;
    if (each_step)
        kept.most_slots = keep->budget_tokens;
    if (n_tokens <= keep->budget_tokens)
        return kept;
    const struct pyramid pyramid = keep->method == KEEP_PYRAMIDKV
                                       ? pyramid_of(keep, n_tokens)
                                       : (struct pyramid){keep->budget_tokens, keep->budget_tokens};
    const bool a_layer = keep->tables == KEEP_TABLE_A_LAYER;
    const int32_t n_held = a_layer ? pyramid.mean : pyramid.first;
    kept.n_slots = in_place && !each_step ? n_tokens : n_held;
    kept.n_unread = kept.n_slots - pyramid.mean;
    if (!in_place)
        kept.n_blocks = kv_blocks_for(kept.n_slots, block);
    else if (keep->method == KEEP_STREAMING)
        kept.n_blocks = blocks_around_gap(keep, n_tokens, block);
    kept.n_voted = each_step ? 0 : n_tokens;
    kept.n_moved = n_moved(keep, &kept);
    return kept;
}
