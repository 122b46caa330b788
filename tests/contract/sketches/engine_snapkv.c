/* SnapKV (Li et al. 2024): the last tokens of a prompt vote; each head of each layer keeps the
 * slots with the most votes and those of the voters, gathered into the first `budget` slots. The
 * next token's slot is `budget`, its position is the prompt's length. */
#include <inflight/engine.h>

/* Of n_slots, the last n_voters and the most voted for of the others, rising. */
static void snapkv_choose(const float *votes, int32_t n_slots, int32_t n_voters, int32_t budget,
                          int32_t *kept)
{
    for (int32_t slot = 0; slot < n_slots; slot++) {
        int32_t rank = 0;
        for (int32_t other = 0; other < n_slots - n_voters; other++)
            rank += votes[other] > votes[slot] || (votes[other] == votes[slot] && other < slot);
        if (slot >= n_slots - n_voters || rank < budget - n_voters)
            *kept++ = slot;
    }
}

/* After the step that computed the prompt's end, of one sequence with votes. The step that is built
 * goes before the next one, or into it. kept: [n_layers][n_kv_heads][budget]. */
int snapkv_compact(const struct ifl_engine *engine, void *self,
                   const struct ifl_engine_model *model, const struct ifl_engine_step *prompt,
                   int32_t budget, int32_t *kept, struct ifl_error *error)
{
    const int32_t n_slots = prompt->positions[prompt->n_tokens - 1] + 1;
    for (int32_t head = 0; head < model->n_layers * model->n_kv_heads; head++)
        snapkv_choose(prompt->votes + (size_t)head * (size_t)n_slots, n_slots, prompt->n_voters[0],
                      budget, kept + (size_t)head * (size_t)budget);
    const struct ifl_engine_keep keep = {prompt->block_ids, prompt->first_block[1], budget, kept};
    struct ifl_engine_step step = {.keeps = &keep, .n_keeps = 1};
    return engine->step(self, &step, error);
}
