/* A hand-over as vLLM's NIXL connector pulls it: the decode side takes the prompt's blocks from the
 * prefill side and computes its last token again, which samples the first one of the answer. */
#include <inflight/engine.h>

struct nixl_side {
    const struct ifl_engine *engine;
    void *self;
    const uint32_t *blocks; /* the prompt's table on this side */
};

/* staging: block_bytes, the same on both sides. */
int nixl_pull(const struct nixl_side *from, const struct nixl_side *to, int32_t n_blocks,
              void *staging, struct ifl_error *error)
{
    for (int32_t i = 0; i < n_blocks; i++)
        if (from->engine->read_block(from->self, IFL_DEVICE_POOL, from->blocks[i], staging, error) <
                0 ||
            to->engine->write_block(to->self, IFL_DEVICE_POOL, to->blocks[i], staging, error) < 0)
            return error->code;
    return 0;
}

int nixl_first_token(const struct nixl_side *side, int32_t n_blocks, int32_t last_token,
                     int32_t n_prompt, int32_t *sampled, struct ifl_error *error)
{
    const int32_t position = n_prompt - 1, one[] = {0, 1}, tables[] = {0, n_blocks};
    struct ifl_engine_step step = {.n_seqs = 1,
                                   .n_tokens = 1,
                                   .token_ids = &last_token,
                                   .positions = &position,
                                   .first_token = one,
                                   .first_block = tables,
                                   .block_ids = side->blocks,
                                   .n_rows = &one[1],
                                   .sampled = sampled};
    return side->engine->step(side->self, &step, error);
}
