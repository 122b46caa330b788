/* Votes of a step, and the slots that it keeps. Both go through one stretch of memory, on the
 * device and pinned on the host, with a number for each KV head and slot of the pool: what a layer
 * has at most. As many layers as fit are copied at a time. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "engine.h"
#include "inflight/minmax.h"
#include "step_slots.h"

/* ---- votes ---- */

static size_t slots_of_pool(const struct cuda_engine *engine)
{
    return (size_t)engine->limits.n_blocks * (size_t)engine->limits.block_tokens;
}

size_t cuda_ballot_numbers(const struct cuda_engine *engine)
{
    return (size_t)engine->limits.model.n_kv_heads * slots_of_pool(engine);
}

int cuda_open_votes(const struct cuda_engine *engine, const struct ifl_engine_step *step,
                    struct ifl_error *error)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    const size_t n = step_votes_before(step, m, step->n_seqs);
    const size_t n_heads = (size_t)m->n_layers * (size_t)m->n_kv_heads;
    if (n > 0 && engine->architecture.window_tokens > 0)
        return ifl_fail(error, IFL_E_DEVICE,
                        "the step has voters and attention sees the last %d positions alone, "
                        "executor cuda expects a model without a window",
                        engine->architecture.window_tokens);
    if (n / n_heads > slots_of_pool(engine))
        return ifl_fail(error, IFL_E_DEVICE,
                        "sequences with voters have %zu slots, executor cuda expects at most the "
                        "pool's %zu",
                        n / n_heads, slots_of_pool(engine));
    step_clear_votes(step, m);
    return 0;
}

/* Where the piece's block table begins in the plan: decodes first, then prefills. */
static int32_t table_of(const struct pass *pass, const struct pass_arrays *plan, int32_t piece)
{
    const bool decodes = pass->pieces[piece].n == 1;
    int32_t at = decodes ? 0 : pass->shape.n_decodes;
    for (int32_t i = 0; i < piece; i++)
        at += (pass->pieces[i].n == 1) == decodes;
    return plan->block_indptr[at];
}

static void add_piece(struct cuda_engine *engine, const struct ifl_engine_step *step, int32_t piece,
                      const struct pass_arrays *plan)
{
    struct cuda_ballot *ballot = &engine->ballot;
    const struct pass_piece *of = &engine->pass.pieces[piece];
    const int32_t first = ifl_max(step_first_voter(step, of->seq), of->first);
    const int32_t n_rows = of->first + of->n - first;
    if (n_rows <= 0)
        return;
    const struct vote_piece voting = {
        .row = engine->pass.row_of[piece] + first - of->first,
        .n_rows = n_rows,
        .n_seen = step_n_seen(step, of->seq, first),
        .n_slots = step_n_slots(step, of->seq),
        .block = table_of(&engine->pass, plan, piece),
        .at = (int32_t)ballot->layer_numbers,
    };
    ballot->seqs[ballot->n_pieces] = of->seq;
    ballot->pieces_host[ballot->n_pieces++] = voting;
    ballot->max_rows = ifl_max(ballot->max_rows, n_rows);
    ballot->max_slots = ifl_max(ballot->max_slots, voting.n_slots);
    ballot->layer_numbers += (size_t)voting.n_slots * (size_t)engine->limits.model.n_kv_heads;
}

int cuda_open_ballot(struct cuda_engine *engine, const struct ifl_engine_step *step,
                     struct ifl_error *error)
{
    struct cuda_ballot *ballot = &engine->ballot;
    struct pass_arrays plan;
    ballot->n_pieces = ballot->max_rows = ballot->max_slots = ballot->first_layer = 0;
    ballot->layer_numbers = 0;
    ballot->step = step;
    if (!step->n_voters)
        return 0;
    pass_lay_out(&engine->pass_limits, &engine->pass.shape, engine->plan_host, &plan);
    for (int32_t i = 0; i < engine->pass.n_pieces; i++)
        add_piece(engine, step, i, &plan);
    if (ballot->n_pieces > 0)
        TRY_CUDA(cudaMemcpyAsync(engine->scratch.vote_pieces, ballot->pieces_host,
                                 (size_t)ballot->n_pieces * sizeof *ballot->pieces_host,
                                 cudaMemcpyHostToDevice, engine->stream));
    return 0;
}

/* Adds what layers first_layer to `layer` of the pass have said. */
static int count(struct cuda_engine *engine, int32_t layer, struct ifl_error *error)
{
    struct cuda_ballot *ballot = &engine->ballot;
    const struct ifl_engine_model *m = &engine->limits.model;
    const float *said = (const float *)(const void *)ballot->host;
    const size_t n_layers = (size_t)(layer - ballot->first_layer) + 1;
    TRY_CUDA(cudaMemcpyAsync(ballot->host, engine->scratch.ballot,
                             n_layers * ballot->layer_numbers * sizeof *said,
                             cudaMemcpyDeviceToHost, engine->stream));
    TRY(wait_stream(engine->stream, &engine->is_lost, error));
    for (int32_t l = ballot->first_layer; l <= layer; l++)
        for (int32_t i = 0; i < ballot->n_pieces; i++) {
            const size_t n = (size_t)ballot->pieces_host[i].n_slots * (size_t)m->n_kv_heads;
            float *votes = ballot->step->votes +
                           step_votes_before(ballot->step, m, ballot->seqs[i]) + (size_t)l * n;
            for (size_t k = 0; k < n; k++)
                votes[k] += *said++;
        }
    ballot->first_layer = layer + 1;
    return 0;
}

int cuda_vote(struct cuda_engine *engine, const struct attn_args *attn, int32_t layer,
              struct ifl_error *error)
{
    const struct cuda_ballot *ballot = &engine->ballot;
    const size_t n_held = (size_t)(layer - ballot->first_layer) * ballot->layer_numbers;
    const struct vote_args args = {
        .element = attn->element,
        .q = attn->q,
        .q_stride = attn->q_stride,
        .n_heads = attn->n_heads,
        .scale = attn->scale,
        .kv = attn->kv,
        .block_id = attn->block_id,
        .pieces = engine->scratch.vote_pieces,
        .n_pieces = ballot->n_pieces,
        .max_rows = ballot->max_rows,
        .max_slots = ballot->max_slots,
        .logsum = engine->scratch.vote_logsum,
        .votes = (float *)engine->scratch.ballot + n_held,
    };
    TRY_CUDA(vote_launch(&args, engine->stream));
    const bool is_last = layer + 1 == engine->limits.model.n_layers;
    const bool is_full = n_held + 2 * ballot->layer_numbers > cuda_ballot_numbers(engine);
    return is_last || is_full ? count(engine, layer, error) : 0;
}

/* ---- slots that are kept ---- */

/* Block tables and where they begin, behind the numbers; slots of a layer. */
static int write_tables(struct cuda_engine *engine, const struct ifl_engine_step *step,
                        struct keep_table *tables, int32_t *block_id, size_t *layer_numbers,
                        struct ifl_error *error)
{
    const size_t n_heads = (size_t)engine->limits.model.n_kv_heads;
    int64_t n_blocks = 0;
    *layer_numbers = 0;
    for (size_t i = 0; i < step->n_keeps; i++) {
        const struct ifl_engine_keep *keep = &step->keeps[i];
        *layer_numbers += n_heads * (size_t)keep->n_kept;
        n_blocks += keep->n_kept > 0 ? keep->n_blocks : 0;
        if (i >= (size_t)engine->limits.n_blocks || n_blocks > engine->limits.n_blocks ||
            *layer_numbers > cuda_ballot_numbers(engine))
            return ifl_fail(error, IFL_E_DEVICE,
                            "tables of which slots are kept have more blocks than the pool, "
                            "expected none in common");
        tables[i] = (struct keep_table){.block = (int32_t)n_blocks - keep->n_blocks,
                                        .n_kept = keep->n_kept};
        if (keep->n_kept > 0)
            memcpy(block_id + n_blocks - keep->n_blocks, keep->block_ids,
                   (size_t)keep->n_blocks * sizeof *block_id);
    }
    return 0;
}

/* The kept slots of layers [first, first + n): of a table, those of all layers side by side. */
static void write_kept(const struct cuda_engine *engine, const struct ifl_engine_step *step,
                       int32_t first, int32_t n, struct keep_table *tables)
{
    int32_t *kept = (int32_t *)(void *)engine->ballot.host;
    size_t at = 0;
    for (size_t i = 0; i < step->n_keeps; i++) {
        const struct ifl_engine_keep *keep = &step->keeps[i];
        const size_t of_layer = (size_t)engine->limits.model.n_kv_heads * (size_t)keep->n_kept;
        tables[i].at = (int32_t)at;
        if (of_layer > 0)
            memcpy(kept + at, keep->kept + (size_t)first * of_layer,
                   (size_t)n * of_layer * sizeof *kept);
        at += (size_t)n * of_layer;
    }
}

static int keep_layers(struct cuda_engine *engine, const struct ifl_engine_step *step,
                       int32_t first, int32_t n, struct ifl_error *error)
{
    const struct ifl_engine_options *o = &engine->limits;
    const int32_t layer_rows = 2 * o->model.n_kv_heads * o->block_tokens;
    const size_t row_bytes = (size_t)engine->head_width * engine->kv_element_bytes;
    const size_t tail = cuda_ballot_numbers(engine) * sizeof(int32_t);
    char *device = engine->scratch.ballot;
    const struct keep_table *tables = (const struct keep_table *)(void *)(device + tail);
    const struct keep_slots_args args = {
        .rows = engine->kv + (size_t)first * (size_t)layer_rows * row_bytes,
        .row_bytes = row_bytes,
        .block_tokens = o->block_tokens,
        .block_rows = o->model.n_layers * layer_rows,
        .n_kv_heads = o->model.n_kv_heads,
        .n_layers = n,
        .block_id = (const int32_t *)(const void *)(tables + o->n_blocks),
        .tables = tables,
        .n_tables = (int32_t)step->n_keeps,
        .kept = (const int32_t *)(const void *)device,
    };
    TRY_CUDA(cudaMemcpyAsync(device, engine->ballot.host, cuda_ballot_bytes(engine),
                             cudaMemcpyHostToDevice, engine->stream));
    TRY_CUDA(keep_slots_launch(&args, engine->stream));
    return wait_stream(engine->stream, &engine->is_lost, error); /* what is pinned is used again */
}

size_t cuda_ballot_bytes(const struct cuda_engine *engine)
{
    return cuda_ballot_numbers(engine) * sizeof(int32_t) +
           (size_t)engine->limits.n_blocks * (sizeof(struct keep_table) + sizeof(int32_t));
}

int cuda_keep_slots(struct cuda_engine *engine, const struct ifl_engine_step *step,
                    struct ifl_error *error)
{
    const int32_t n_layers = engine->limits.model.n_layers;
    const size_t n_numbers = cuda_ballot_numbers(engine);
    struct keep_table *tables =
        (struct keep_table *)(void *)(engine->ballot.host + n_numbers * sizeof(int32_t));
    int32_t *block_id = (int32_t *)(void *)(tables + engine->limits.n_blocks);
    size_t layer_numbers;
    if (step->n_keeps == 0)
        return 0;
    TRY(write_tables(engine, step, tables, block_id, &layer_numbers, error));
    const size_t n_fit = layer_numbers > 0 ? n_numbers / layer_numbers : (size_t)n_layers;
    for (int32_t first = 0, n; first < n_layers; first += n) {
        n = (int32_t)ifl_min((size_t)(n_layers - first), n_fit);
        write_kept(engine, step, first, n, tables);
        TRY(keep_layers(engine, step, first, n, error));
    }
    return 0;
}
