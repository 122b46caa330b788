/* All of the engine's memory, taken once. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "engine.h"
#include "host_memory.h"
#include "inflight/minmax.h"
#include "numa.h"

static const double GIB = 1073741824.0;

/* ---- how much ---- */

struct stretch {
    char *base; /* NULL: only measured */
    size_t at;
};

static void *cut(struct stretch *memory, size_t n_bytes)
{
    void *here = memory->base ? memory->base + memory->at : NULL;
    memory->at += (n_bytes + 255) & ~(size_t)255;
    return here;
}

/* Lays scratch out from `base` on, which may be NULL; returns its bytes. */
static size_t lay_out_scratch(struct cuda_engine *engine, void *base)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    const struct pass_limits *limits = &engine->pass_limits;
    struct cuda_scratch *s = &engine->scratch;
    const size_t element = sizeof(uint16_t), n = (size_t)limits->max_rows;
    const size_t width = (size_t)engine->head_width, q_heads = (size_t)m->n_q_heads;
    const size_t n_parts = 2 * (size_t)limits->n_shares, d_ffn = (size_t)m->d_ffn;
    const size_t row = (size_t)m->d_model * element;
    const size_t tile_rows = /* of all heads together; warm.c writes a part on any device */
        (size_t)ifl_max(limits->slots.low, m->n_kv_heads) * ATTN_LOW_TILE;
    const size_t n_keys = CUDA_LOGIT_ROWS * (size_t)argmax_parts(m->n_vocab);
    struct stretch memory = {base, 0};
    s->x = cut(&memory, n * row);
    s->normed = cut(&memory, n * row);
    s->qkv = cut(&memory, n * (q_heads + 2 * (size_t)m->n_kv_heads) * width * element);
    s->attended = cut(&memory, n * q_heads * width * element);
    s->gate_up = cut(&memory, n * 2 * d_ffn * element);
    s->activated = cut(&memory, n * d_ffn * element);
    s->last = cut(&memory, CUDA_LOGIT_ROWS * row);
    s->last_normed = cut(&memory, CUDA_LOGIT_ROWS * row);
    s->logits = cut(&memory, CUDA_LOGIT_ROWS * (size_t)engine->logit_stride * sizeof *s->logits);
    s->sampled = cut(&memory, n * sizeof *s->sampled);
    s->argmax_keys = cut(&memory, n_keys * sizeof *s->argmax_keys);
    s->argmax_done = cut(&memory, CUDA_LOGIT_ROWS * sizeof *s->argmax_done);
    s->parts = cut(&memory, n_parts * q_heads * width * sizeof *s->parts);
    s->part_logsum = cut(&memory, n_parts * q_heads * sizeof *s->part_logsum);
    s->tile_parts = cut(&memory, tile_rows * width * sizeof *s->tile_parts);
    s->tile_logsum = cut(&memory, tile_rows * sizeof *s->tile_logsum);
    s->pairs = cut(&memory, CUDA_PAIRS * sizeof *s->pairs);
    s->ballot = cut(&memory, cuda_ballot_bytes(engine));
    s->vote_pieces = cut(&memory, (size_t)limits->max_seqs * sizeof *s->vote_pieces);
    s->vote_logsum = cut(&memory, n * q_heads * sizeof *s->vote_logsum);
    engine->plan = cut(&memory, pass_max_bytes(limits));
    engine->angles = cut(&memory, (size_t)engine->limits.max_tokens * width * sizeof(float));
    return memory.at;
}

/* ---- taking ---- */

struct room { /* on the device, before anything is taken */
    size_t free_bytes, all_bytes;
};

static int refuse(const struct cuda_engine *engine, size_t scratch_bytes, const struct room *room,
                  struct ifl_error *error)
{
    return ifl_fail(
        error, IFL_E_NOMEM,
        "out of memory: the engine asks for %.2f GiB of weights, %.2f GiB of KV blocks, "
        "%.2f GiB of scratch and %.2f GiB to measure on in %s, and leaves %.2f to the driver; the "
        "device has %.2f GiB, %.2f of them free",
        (double)engine->weights_bytes / GIB,
        (double)engine->limits.n_blocks * (double)engine->block_bytes / GIB,
        (double)(scratch_bytes + GEMM_WORKSPACE_BYTES) / GIB,
        (double)engine->limits.bench_bytes / GIB, engine->element == ELEMENT_BF16 ? "bf16" : "fp16",
        (double)CUDA_LEFT_BYTES / GIB, (double)room->all_bytes / GIB,
        (double)room->free_bytes / GIB);
}

static int take_device(struct cuda_engine *engine, struct ifl_error *error)
{
    const size_t scratch_bytes = lay_out_scratch(engine, NULL);
    const size_t kv_bytes = (size_t)engine->limits.n_blocks * engine->block_bytes;
    const struct {
        void **memory;
        size_t n_bytes;
    } wanted[] = {{(void **)&engine->weights, engine->weights_bytes},
                  {(void **)&engine->kv, kv_bytes},
                  {(void **)&engine->bench, engine->limits.bench_bytes},
                  {&engine->gemm.workspace, GEMM_WORKSPACE_BYTES},
                  {&engine->scratch_memory, scratch_bytes}};
    struct room room;
    TRY_CUDA(cudaMemGetInfo(&room.free_bytes, &room.all_bytes));
    if ((double)engine->weights_bytes + (double)kv_bytes + (double)engine->limits.bench_bytes +
            (double)scratch_bytes + (double)GEMM_WORKSPACE_BYTES + (double)CUDA_LEFT_BYTES >
        (double)room.free_bytes)
        return refuse(engine, scratch_bytes, &room, error);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (wanted[i].n_bytes == 0)
            continue;
        const cudaError_t failed = cudaMalloc(wanted[i].memory, wanted[i].n_bytes);
        if (failed) {
            *wanted[i].memory = NULL;
            cudaGetLastError(); /* it would be taken for a launch's */
            return failed == cudaErrorMemoryAllocation ? refuse(engine, scratch_bytes, &room, error)
                                                       : cuda_fail(error, "cudaMalloc", failed);
        }
    }
    lay_out_scratch(engine, engine->scratch_memory);
    TRY_CUDA(cudaMemsetAsync(engine->scratch.argmax_done, 0,
                             CUDA_LOGIT_ROWS * sizeof *engine->scratch.argmax_done,
                             engine->stream));
    return 0;
}

/* Pages are pinned at once: Linux would kill a process that takes more than there is. */
static bool host_has(size_t n_bytes, struct host_memory *host)
{
    host_memory_read("", host);
    return (double)n_bytes <= host->free_bytes;
}

static int take_pinned(void **memory, size_t n_bytes, const char *what, struct ifl_error *error)
{
    struct host_memory host;
    const cudaError_t failed =
        host_has(n_bytes, &host)
            ? cudaHostAlloc(memory, n_bytes ? n_bytes : 1, cudaHostAllocDefault)
            : cudaErrorMemoryAllocation;
    if (!failed)
        return 0;
    *memory = NULL;
    cudaGetLastError();
    return ifl_fail(error, failed == cudaErrorMemoryAllocation ? IFL_E_NOMEM : IFL_E_DEVICE,
                    "%.2f GiB of pinned host memory for %s: %s; it may have %.2f GiB, %.2f of them "
                    "free",
                    (double)n_bytes / GIB, what, cudaGetErrorString(failed), host.all_bytes / GIB,
                    host.free_bytes / GIB);
}

static int take_beside(struct cuda_engine *engine, struct cuda_beside *beside,
                       struct ifl_error *error)
{
    const size_t n = CUDA_BESIDE_BYTES / engine->block_bytes;
    beside->half_blocks = ifl_max(ifl_min(n, (size_t)engine->limits.n_blocks), (size_t)1);
    return take_pinned((void **)&beside->pinned, 2 * beside->half_blocks * engine->block_bytes,
                       "blocks that move", error);
}

static int take_pinned_all(struct cuda_engine *engine, struct ifl_error *error)
{
    const struct ifl_engine_options *o = &engine->limits;
    struct cuda_moves *moves = &engine->moves;
    TRY(take_pinned((void **)&engine->host, (size_t)o->n_host_blocks * engine->block_bytes,
                    "swapped blocks", error));
    TRY(take_pinned((void **)&engine->plan_host, pass_max_bytes(&engine->pass_limits),
                    "step inputs", error));
    TRY(take_pinned((void **)&moves->pairs, CUDA_PAIRS * sizeof *moves->pairs, "block copies",
                    error));
    TRY(take_pinned((void **)&engine->ballot.host, cuda_ballot_bytes(engine), "votes", error));
    TRY(take_pinned((void **)&engine->ballot.pieces_host,
                    (size_t)engine->pass_limits.max_seqs * sizeof *engine->ballot.pieces_host,
                    "voters", error));
    TRY(take_beside(engine, &engine->sending, error));
    TRY(take_beside(engine, &engine->receiving, error));
    return take_pinned((void **)&engine->sampled_host,
                       (size_t)o->max_step_tokens * sizeof *engine->sampled_host, "sampled tokens",
                       error);
}

static int take_pinned_nearby(struct cuda_engine *engine, struct ifl_error *error)
{
    const bool prefers = numa_prefer_device(0);
    const int rc = take_pinned_all(engine, error);
    if (prefers)
        numa_prefer_default();
    return rc;
}

static int take_pass(struct cuda_engine *engine, struct ifl_error *error)
{
    const struct pass_limits *limits = &engine->pass_limits;
    const size_t n_seqs = (size_t)limits->max_seqs, n_items = (size_t)pass_max_items(limits);
    const size_t n_parts = (size_t)attn_prefill_max_parts(limits->n_kv_heads, limits->slots);
    struct pass *pass = &engine->pass;
    pass->pieces = malloc(n_seqs * sizeof *pass->pieces);
    pass->row_of = malloc(n_seqs * sizeof *pass->row_of);
    pass->q_indptr = malloc((n_seqs + 1) * sizeof *pass->q_indptr);
    pass->kv_len = malloc(n_seqs * sizeof *pass->kv_len);
    pass->prefill.items = malloc(n_items * sizeof *pass->prefill.items);
    pass->prefill.merges = malloc((n_parts + 1) * sizeof *pass->prefill.merges);
    if (!pass->pieces || !pass->row_of || !pass->q_indptr || !pass->kv_len ||
        !pass->prefill.items || !pass->prefill.merges)
        return ifl_fail_nomem(error);
    return 0;
}

static int take_host(struct cuda_engine *engine, struct ifl_error *error)
{
    const struct ifl_engine_options *o = &engine->limits;
    struct cuda_moves *moves = &engine->moves;
    const size_t n_blocks = (size_t)o->n_blocks;
    engine->at = calloc((size_t)o->model.n_layers, sizeof *engine->at);
    moves->leaving = calloc(4 * n_blocks, sizeof *moves->leaving);
    moves->landing = calloc((size_t)o->n_host_blocks + 1, sizeof *moves->landing);
    engine->ballot.seqs = calloc((size_t)engine->pass_limits.max_seqs, sizeof *engine->ballot.seqs);
    if (!engine->at || !moves->leaving || !moves->landing || !engine->ballot.seqs)
        return ifl_fail_nomem(error);
    moves->arriving = moves->leaving + n_blocks;
    moves->read = moves->arriving + n_blocks;
    moves->written = moves->read + n_blocks;
    return 0;
}

static int take_streams(struct cuda_engine *engine, struct ifl_error *error)
{
    struct cuda_moves *moves = &engine->moves;
    cudaStream_t *streams[] = {&engine->stream, &moves->out, &moves->in, &engine->sending.stream,
                               &engine->receiving.stream};
    cudaEvent_t *orders[] = {
        &engine->plan_copied,       &moves->out_done,          &moves->in_done,
        &moves->pairs_copied,       &engine->sending.done[0],  &engine->sending.done[1],
        &engine->receiving.done[0], &engine->receiving.done[1]};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        TRY_CUDA(cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking));
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        TRY_CUDA(cudaEventCreateWithFlags(orders[i], cudaEventDisableTiming));
    TRY_CUDA(cudaEventCreateWithFlags(&engine->started, cudaEventDefault));
    TRY_CUDA(cudaEventCreateWithFlags(&engine->ended, cudaEventDefault));
    return 0;
}

int cuda_take_memory(struct cuda_engine *engine, struct ifl_error *error)
{
    engine->weights_bytes = cuda_weights_bytes(engine);
    TRY(take_streams(engine, error));
    TRY(take_device(engine, error));
    TRY(take_host(engine, error));
    TRY(take_pass(engine, error));
    return take_pinned_nearby(engine, error);
}

/* cudaMemcpy may return before the last bytes have arrived, and it uses a stream that the engine's
 * streams do not wait for. */
int cuda_send(struct cuda_engine *engine, void *to, const void *from, size_t n_bytes,
              struct ifl_error *error)
{
    TRY_CUDA(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyHostToDevice, engine->stream));
    return wait_stream(engine->stream, &engine->is_lost, error);
}

/* ---- giving back ---- */

static void give_streams(struct cuda_engine *engine)
{
    struct cuda_moves *moves = &engine->moves;
    const cudaStream_t streams[] = {engine->stream, moves->out, moves->in, engine->sending.stream,
                                    engine->receiving.stream};
    const cudaEvent_t events[] = {
        engine->started,          engine->ended,           engine->plan_copied,
        moves->out_done,          moves->in_done,          moves->pairs_copied,
        engine->sending.done[0],  engine->sending.done[1], engine->receiving.done[0],
        engine->receiving.done[1]};
    for (size_t i = 0; i < CUDA_N_GRAPHS; i++)
        for (size_t merges = 0; merges < 2; merges++)
            if (engine->graphs[i][merges])
                cudaGraphExecDestroy(engine->graphs[i][merges]);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i])
            cudaStreamDestroy(streams[i]);
}

void cuda_give_memory(struct cuda_engine *engine)
{
    void *const device[] = {engine->weights, engine->kv, engine->bench, engine->gemm.workspace,
                            engine->scratch_memory};
    void *const pinned[] = {engine->host,           engine->plan_host,
                            engine->moves.pairs,    engine->sampled_host,
                            engine->ballot.host,    engine->ballot.pieces_host,
                            engine->sending.pinned, engine->receiving.pinned};
    void *const host[] = {(void *)(uintptr_t)engine->at, engine->pass.pieces,
                          engine->pass.row_of,           engine->pass.q_indptr,
                          engine->pass.kv_len,           engine->pass.prefill.items,
                          engine->pass.prefill.merges,   engine->moves.leaving,
                          engine->moves.landing,         engine->ballot.seqs};
    give_streams(engine);
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            cudaFree(device[i]);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        if (pinned[i])
            cudaFreeHost(pinned[i]);
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}
