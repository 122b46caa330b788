#include "fit/calibrate/batch.h"

#include <string.h>

int batch_create(struct batch *batch, const struct ifl_engine_options *limits,
                 struct ifl_error *error)
{
    const size_t n_tokens = (size_t)limits->max_step_tokens, n_seqs = (size_t)limits->max_step_seqs;
    *batch = (struct batch){.limits = limits};
    batch->token_ids = calloc(n_tokens, sizeof *batch->token_ids);
    batch->positions = calloc(n_tokens, sizeof *batch->positions);
    batch->first_token = calloc(n_seqs + 1, sizeof *batch->first_token);
    batch->first_block = calloc(n_seqs + 1, sizeof *batch->first_block);
    batch->sampled = calloc(n_seqs, sizeof *batch->sampled);
    batch->n_rows = calloc(n_seqs, sizeof *batch->n_rows);
    batch->block_ids = calloc((size_t)limits->n_blocks, sizeof *batch->block_ids);
    if (!batch->token_ids || !batch->positions || !batch->first_token || !batch->first_block ||
        !batch->sampled || !batch->n_rows || !batch->block_ids)
        return ifl_fail_nomem(error);
    batch_clear(batch);
    return 0;
}

void batch_finish(struct batch *batch)
{
    free(batch->token_ids);
    free(batch->positions);
    free(batch->first_token);
    free(batch->first_block);
    free(batch->sampled);
    free(batch->n_rows);
    free(batch->block_ids);
}

void batch_clear(struct batch *batch)
{
    batch->totals = (struct ifl_step_totals){0};
    batch->kv_tokens = 0;
    batch->step = (struct ifl_engine_step){
        .token_ids = batch->token_ids,
        .positions = batch->positions,
        .first_token = batch->first_token,
        .first_block = batch->first_block,
        .block_ids = batch->block_ids,
        .n_rows = batch->n_rows,
        .sampled = batch->sampled,
    };
}

static void count(struct batch *batch, int32_t n_context, int32_t n_new)
{
    struct ifl_step_totals *totals = &batch->totals;
    batch->kv_tokens += n_context + n_new;
    totals->n_tokens += n_new;
    totals->n_sampled++;
    if (n_new == 1) {
        totals->n_decode_seqs++;
        totals->decode_context += n_context + 1;
        return;
    }
    totals->n_prefill_seqs++;
    totals->n_prefill_tokens += n_new;
    totals->prefill_q_kv += (int64_t)n_new * n_context;
    totals->prefill_q_q += (int64_t)n_new * n_new;
    if (n_context + n_new > totals->max_prefill_kv)
        totals->max_prefill_kv = n_context + n_new;
}

static uint32_t greatest_common_divisor(uint32_t a, uint32_t b)
{
    return b ? greatest_common_divisor(b, a % b) : a;
}

/* A permutation of the pool's blocks: the stride shares no factor with their number. */
uint32_t batch_block(const struct batch *batch, uint32_t i)
{
    ifl_assert(i < (uint32_t)batch->limits->n_blocks);
    const uint32_t n = (uint32_t)batch->limits->n_blocks;
    uint32_t stride = n / 3 * 2 + 1;
    while (greatest_common_divisor(n, stride) != 1)
        stride++;
    return (uint32_t)((uint64_t)i * stride % n);
}

bool batch_add(struct batch *batch, int32_t n_context, int32_t n_new)
{
    const struct ifl_engine_options *limits = batch->limits;
    struct ifl_engine_step *step = &batch->step;
    const int32_t n_blocks = (n_context + n_new + limits->block_tokens - 1) / limits->block_tokens;
    const int32_t from = batch->first_block[step->n_seqs];
    if (step->n_seqs == limits->max_step_seqs || n_context + n_new > limits->max_tokens ||
        step->n_tokens + n_new > limits->max_step_tokens || from + n_blocks > limits->n_blocks)
        return false;
    for (int32_t i = 0; i < n_new; i++, step->n_tokens++) {
        batch->token_ids[step->n_tokens] =
            (int32_t)((uint32_t)step->n_tokens * 2654435761u % (uint32_t)limits->model.n_vocab);
        batch->positions[step->n_tokens] = n_context + i;
    }
    for (int32_t i = 0; i < n_blocks; i++)
        batch->block_ids[from + i] = batch_block(batch, (uint32_t)(from + i));
    batch->n_rows[step->n_seqs++] = 1;
    batch->first_token[step->n_seqs] = step->n_tokens;
    batch->first_block[step->n_seqs] = from + n_blocks;
    count(batch, n_context, n_new);
    return true;
}

bool batch_add_many(struct batch *batch, int32_t n_seqs, int32_t n_context, int32_t n_new,
                    enum batch_contexts contexts)
{
    const int32_t span = contexts == BATCH_RAGGED && n_seqs > 1 ? n_context * 3 / 2 : 0;
    for (int32_t i = 0; i < n_seqs; i++)
        if (!batch_add(batch,
                       n_context - span / 2 +
                           (span ? (int32_t)((int64_t)span * i / (n_seqs - 1)) : 0),
                       n_new))
            return false;
    return true;
}
