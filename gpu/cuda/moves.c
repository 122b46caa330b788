/* Block moves. Swaps to the host and back have a stream each; copies within the pool run on the
 * compute stream. The compute stream waits for a swap only if the step touches a swapped block. */
#include <cuda_runtime_api.h>

#include "engine.h"

/* ---- batches of stretches ---- */

#if CUDART_VERSION >= 13000
static int copy_batch(const struct cuda_moves *moves, size_t n, cudaStream_t stream,
                      struct ifl_error *error)
{
    struct cudaMemcpyAttributes attributes = {
        .srcAccessOrder = cudaMemcpySrcAccessOrderStream,
        .flags = cudaMemcpyFlagPreferOverlapWithCompute,
    };
    size_t first = 0;
    if (n > 0)
        TRY_CUDA(cudaMemcpyBatchAsync(moves->to, moves->from, moves->bytes, n, &attributes, &first,
                                      1, stream));
    return 0;
}
#endif

/* One call for many stretches where CUDA has it: a call costs microseconds. */
static int copy_stretches(const struct cuda_engine *engine, size_t n, enum cudaMemcpyKind kind,
                          cudaStream_t stream, struct ifl_error *error)
{
    const struct cuda_moves *moves = &engine->moves;
#if CUDART_VERSION >= 13000
    if (!cuda_does_without(engine, IFL_WITHOUT_BATCHED_COPIES))
        return copy_batch(moves, n, stream, error);
#endif
    for (size_t i = 0; i < n; i++)
        TRY_CUDA(cudaMemcpyAsync(moves->to[i], moves->from[i], moves->bytes[i], kind, stream));
    return 0;
}

/* Blocks that are neighbours on both sides go as one stretch. */
static int swap(struct cuda_engine *engine, char *to, const char *from,
                const struct ifl_copy *copies, size_t n_copies, enum cudaMemcpyKind kind,
                cudaStream_t stream, struct ifl_error *error)
{
    struct cuda_moves *moves = &engine->moves;
    const size_t block = engine->block_bytes;
    size_t n = 0;
    for (size_t i = 0; i < n_copies; i++) {
        if (i > 0 && n > 0 && copies[i].from == copies[i - 1].from + 1 &&
            copies[i].to == copies[i - 1].to + 1) {
            moves->bytes[n - 1] += block;
            continue;
        }
        if (n == CUDA_MOVES) {
            TRY(copy_stretches(engine, n, kind, stream, error));
            n = 0;
        }
        moves->to[n] = to + copies[i].to * block;
        moves->from[n] = from + copies[i].from * block;
        moves->bytes[n++] = block;
    }
    return copy_stretches(engine, n, kind, stream, error);
}

/* ---- order of the streams ---- */

static void stamp(struct cuda_moves *moves, const struct ifl_engine_step *step)
{
    moves->step++;
    for (size_t i = 0; i < step->n_outs; i++) {
        moves->leaving[step->outs[i].from] = moves->step;
        moves->landing[step->outs[i].to] = moves->step;
    }
    for (size_t i = 0; i < step->n_ins; i++)
        moves->arriving[step->ins[i].to] = moves->step;
}

/* Does a swap-in read or overwrite a block that this step swaps out? */
static bool ins_follow_outs(const struct cuda_moves *moves, const struct ifl_engine_step *step)
{
    for (size_t i = 0; i < step->n_ins; i++)
        if (moves->landing[step->ins[i].from] == moves->step ||
            moves->leaving[step->ins[i].to] == moves->step)
            return true;
    return false;
}

/* Does the compute stream touch blocks with this step's stamp? */
static bool touches(const struct cuda_engine *engine, const struct ifl_engine_step *step,
                    const uint64_t *stamps)
{
    const uint64_t now = engine->moves.step;
    for (size_t i = 0; i < step->n_copies; i++)
        if (stamps[step->copies[i].from] == now || stamps[step->copies[i].to] == now)
            return true;
    for (size_t i = 0; i < step->n_spoilt; i++)
        if (stamps[step->spoilt[i]] == now)
            return true;
    for (size_t i = 0; i < step->n_keeps; i++)
        for (int32_t k = 0; k < step->keeps[i].n_blocks; k++)
            if (step->keeps[i].n_kept > 0 && stamps[step->keeps[i].block_ids[k]] == now)
                return true;
    for (int32_t i = 0; step->n_seqs > 0 && i < step->first_block[step->n_seqs]; i++)
        if (stamps[step->block_ids[i]] == now)
            return true;
    return false;
}

static int swap_blocks(struct cuda_engine *engine, const struct ifl_engine_step *step,
                       struct ifl_error *error)
{
    struct cuda_moves *moves = &engine->moves;
    stamp(moves, step);
    if (step->n_outs > 0) {
        TRY(swap(engine, engine->host, engine->kv, step->outs, step->n_outs, cudaMemcpyDeviceToHost,
                 moves->out, error));
        TRY_CUDA(cudaEventRecord(moves->out_done, moves->out));
        if (ins_follow_outs(moves, step))
            TRY_CUDA(cudaStreamWaitEvent(moves->in, moves->out_done, 0));
        if (touches(engine, step, moves->leaving))
            TRY_CUDA(cudaStreamWaitEvent(engine->stream, moves->out_done, 0));
    }
    if (step->n_ins > 0) {
        TRY(swap(engine, engine->kv, engine->host, step->ins, step->n_ins, cudaMemcpyHostToDevice,
                 moves->in, error));
        TRY_CUDA(cudaEventRecord(moves->in_done, moves->in));
        if (touches(engine, step, moves->arriving))
            TRY_CUDA(cudaStreamWaitEvent(engine->stream, moves->in_done, 0));
    }
    return 0;
}

/* ---- within the pool ---- */

static int launch_pairs(struct cuda_engine *engine, int32_t n, struct ifl_error *error)
{
    struct cuda_moves *moves = &engine->moves;
    const struct block_copy_args args = {engine->kv, engine->block_bytes, engine->scratch.pairs, n};
    if (n == 0)
        return 0;
    TRY_CUDA(cudaMemcpyAsync(engine->scratch.pairs, moves->pairs, (size_t)n * sizeof *moves->pairs,
                             cudaMemcpyHostToDevice, engine->stream));
    TRY_CUDA(cudaEventRecord(moves->pairs_copied, engine->stream));
    TRY_CUDA(block_copy_launch(&args, engine->stream));
    return wait_event(moves->pairs_copied, &engine->is_lost, error);
}

/* Copies of one launch run in any order, so a copy that touches a block written by another begins
 * the next launch. Each launch has its own stamp number. */
static int copy_blocks(struct cuda_engine *engine, const struct ifl_engine_step *step,
                       struct ifl_error *error)
{
    struct cuda_moves *moves = &engine->moves;
    int32_t n = 0;
    moves->step++;
    for (size_t i = 0; i < step->n_copies; i++) {
        const uint32_t from = step->copies[i].from, to = step->copies[i].to;
        if (from == to)
            continue;
        if (n == CUDA_PAIRS || moves->written[from] == moves->step ||
            moves->written[to] == moves->step || moves->read[to] == moves->step) {
            TRY(launch_pairs(engine, n, error));
            n = 0;
            moves->step++;
        }
        moves->read[from] = moves->written[to] = moves->step;
        moves->pairs[n++] = (struct block_pair){(int32_t)from, (int32_t)to};
    }
    return launch_pairs(engine, n, error);
}

int cuda_move_blocks(struct cuda_engine *engine, const struct ifl_engine_step *step,
                     struct ifl_error *error)
{
    if (step->n_outs + step->n_ins > 0)
        TRY(swap_blocks(engine, step, error));
    TRY(copy_blocks(engine, step, error));
    TRY(cuda_keep_slots(engine, step, error));
    for (size_t i = 0; i < step->n_spoilt; i++) /* all bits set: NaN */
        TRY_CUDA(cudaMemsetAsync(engine->kv + step->spoilt[i] * engine->block_bytes, 0xff,
                                 engine->block_bytes, engine->stream));
    return 0;
}
