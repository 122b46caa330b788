/* Preconditions of gpu/ on the host, each broken once. */
#include "cpu/engine.h"
#include "cuda/attn_plan.h"
#include "parallel.h"
#include "safetensors.h"
#include "step_slots.h"
#include "violates.h"

VIOLATES(weights, no_float, tensor_numbers, "tensor->type != TENSOR_OTHER")
{
    const struct tensor tensor = {.type = TENSOR_OTHER, .to = 8};
    tensor_numbers(&tensor);
}

static void nothing(void *context, size_t first, size_t n)
{
    (void)context;
    (void)first;
    (void)n;
}

VIOLATES(loops, threads, parallel_for, "n_threads >= 1")
{
    parallel_for(0, 1, 1, nothing, NULL);
}

VIOLATES(loops, grain, parallel_for, "grain > 0")
{
    parallel_for(1, 1, 0, nothing, NULL);
}

/* ---- a step of one sequence with two tokens ---- */

static const int32_t positions[2] = {0, 1}, first_token[2] = {0, 2};
static const struct ifl_engine_step step = {
    .n_seqs = 1, .n_tokens = 2, .positions = positions, .first_token = first_token};
static const struct ifl_engine_model model = {.n_layers = 1, .n_kv_heads = 1, .d_head = 2};

VIOLATES(slots, token, step_slot, "token < step->n_tokens")
{
    step_slot(&step, 2);
}

VIOLATES(slots, of_seq, step_n_slots, "seq < step->n_seqs")
{
    step_n_slots(&step, 1);
}

VIOLATES(slots, seen, step_n_seen, "token < step->first_token[seq + 1]")
{
    step_n_seen(&step, 0, 2);
}

VIOLATES(slots, row, step_first_row, "seq < step->n_seqs")
{
    step_first_row(&step, 1);
}

VIOLATES(slots, voter, step_first_voter, "seq < step->n_seqs")
{
    step_first_voter(&step, 1);
}

VIOLATES(slots, votes, step_votes_before, "seq <= step->n_seqs")
{
    step_votes_before(&step, &model, 2);
}

/* ---- the CPU engine ---- */

static struct cpu_engine engine = {
    .limits = {
        .model = {.n_layers = 1, .n_kv_heads = 1, .d_head = 2}, .n_blocks = 1, .block_tokens = 16}};

VIOLATES(engines, block, cpu_block_row, "block < (uint32_t)engine->limits.n_blocks")
{
    cpu_block_row(&engine, 1, 0, 0, 0, 0);
}

VIOLATES(engines, layer, cpu_block_row, "layer < m->n_layers")
{
    cpu_block_row(&engine, 0, 1, 0, 0, 0);
}

VIOLATES(engines, token_of_block, cpu_block_row, "token < engine->limits.block_tokens")
{
    cpu_block_row(&engine, 0, 0, 0, 0, 16);
}

VIOLATES(engines, rows_of_pass, cpu_forward, "pass->n <= CPU_PASS_TOKENS")
{
    const struct cpu_pass pass = {.engine = &engine, .step = &step, .n = CPU_PASS_TOKENS + 1};
    int32_t sampled;
    cpu_forward(&pass, &sampled, NULL);
}

VIOLATES(engines, rows_of_step, cpu_forward, "pass->step->n_tokens")
{
    const struct cpu_pass pass = {.engine = &engine, .step = &step, .first = 1, .n = 2};
    int32_t sampled;
    cpu_forward(&pass, &sampled, NULL);
}

VIOLATES(engines, tokens_in_pass, cpu_attend_seq, "first + n <= pass->first + pass->n")
{
    const struct cpu_pass pass = {.engine = &engine, .step = &step, .n = 1};
    cpu_attend_seq(&pass, 0, 0, 0, 2);
}

VIOLATES(engines, tokens_of_seq, cpu_attend_seq, "pass->step->first_token[seq + 1]")
{
    const struct cpu_pass pass = {.engine = &engine, .step = &step, .n = 3};
    cpu_attend_seq(&pass, 0, 0, 0, 3);
}

VIOLATES(engines, argmax, cpu_argmax, "n > 0")
{
    cpu_argmax(NULL, 0);
}

VIOLATES(engines, softmax, cpu_softmax, "n > 0")
{
    cpu_softmax(NULL, 0);
}

/* ---- plans for the GPU ---- */

VIOLATES(plans, shares, attn_decode_plan, "n_shares > 0")
{
    attn_decode_plan(NULL, 0, 0, NULL, 0);
}

VIOLATES(plans, prefill, attn_prefill_plan, "batch->group > 0")
{
    const struct attn_prefill_batch batch = {.n_kv_heads = 1, .slots = {1, 1}};
    attn_prefill_plan(NULL, &batch);
}

VIOLATES(plans, parts, attn_prefill_max_parts, "n_kv_heads > 0")
{
    attn_prefill_max_parts(0, (struct attn_prefill_slots){1, 1});
}
