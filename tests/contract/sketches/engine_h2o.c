/* H2O (Zhang et al. 2023): of `budget` slots the last `recent` tokens stay and the heavy hitters;
 * the next token takes the slot of the lightest other. Votes are summed over layers and heads. */
#include <inflight/engine.h>

struct h2o_seq {
    struct ifl_engine_step step; /* of this sequence, with its block table and room for votes */
    int32_t n_heads;             /* n_layers n_kv_heads of the model */
    int32_t budget, recent;
    double *weight;    /* [budget] sum of the votes for what a slot holds */
    int32_t *position; /* [budget] of what a slot holds */
};

static int32_t h2o_slot(const struct h2o_seq *s, int32_t position)
{
    int32_t lightest = position < s->budget ? position : -1;
    for (int32_t i = 0; position >= s->budget && i < s->budget; i++)
        if (s->position[i] + s->recent < position &&
            (lightest < 0 || s->weight[i] < s->weight[lightest]))
            lightest = i;
    return lightest;
}

int h2o_decode(const struct ifl_engine *engine, void *self, struct h2o_seq *s, int32_t token,
               int32_t position, int32_t *next, struct ifl_error *error)
{
    const int32_t slot = h2o_slot(s, position), ends[] = {0, 1};
    const int32_t n_slots = position < s->budget ? position + 1 : s->budget;
    struct ifl_engine_step step = s->step;
    step.n_tokens = 1, step.first_token = ends, step.n_rows = step.n_voters = &ends[1];
    step.token_ids = &token, step.positions = &position, step.sampled = next;
    step.slots = &slot, step.n_slots = &n_slots;
    if (engine->step(self, &step, error) < 0)
        return error->code;
    s->position[slot] = position;
    s->weight[slot] = 0;
    for (int32_t i = 0; i < s->n_heads * n_slots; i++)
        s->weight[i % n_slots] += step.votes[i];
    return 0;
}
