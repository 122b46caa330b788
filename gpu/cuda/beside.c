/* Copies of blocks beside the steps, to any memory of the host and from there: by way of pinned
 * memory, one half of which is copied by the device while the host copies the other. Each direction
 * has a stream, and is called by one thread at a time. No event of another stream is needed: steps
 * are waited for, and one under way writes none of the blocks that are sent and touches none of
 * those that come. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "engine.h"
#include "inflight/minmax.h"
#include "step_check.h"

enum { HALVES = 2 };

/* The host's part of a copy of blocks [first, first + n), and the half that it uses. */
struct portion {
    size_t first, n;
    char *pinned;
    cudaEvent_t done;
};

static struct portion portion_at(const struct cuda_engine *engine, const struct cuda_beside *beside,
                                 size_t first, size_t n_all)
{
    const size_t each = beside->half_blocks, half = first / each % HALVES;
    const size_t left = n_all > first ? n_all - first : 0;
    return (struct portion){first, ifl_min(left, each),
                            beside->pinned + half * each * engine->block_bytes, beside->done[half]};
}

static int enqueue(struct cuda_engine *engine, const struct cuda_beside *beside,
                   const struct portion *p, const uint32_t *blocks, enum cudaMemcpyKind kind,
                   struct ifl_error *error)
{
    const size_t n_bytes = engine->block_bytes;
    for (size_t i = 0; i < p->n; i++) {
        char *pinned = p->pinned + i * n_bytes;
        char *block = engine->kv + blocks[p->first + i] * n_bytes;
        const bool goes_out = kind == cudaMemcpyDeviceToHost;
        TRY_CUDA(cudaMemcpyAsync(goes_out ? pinned : block, goes_out ? block : pinned, n_bytes,
                                 kind, beside->stream));
    }
    TRY_CUDA(cudaEventRecord(p->done, beside->stream));
    return 0;
}

/* The device fills one half while the other is emptied. */
static int send(struct cuda_engine *engine, const uint32_t *blocks, size_t n, char *bytes,
                struct ifl_error *error)
{
    const struct cuda_beside *beside = &engine->sending;
    const size_t n_bytes = engine->block_bytes;
    struct portion now = portion_at(engine, beside, 0, n);
    TRY(enqueue(engine, beside, &now, blocks, cudaMemcpyDeviceToHost, error));
    while (now.n > 0) {
        const struct portion next = portion_at(engine, beside, now.first + beside->half_blocks, n);
        if (next.n > 0)
            TRY(enqueue(engine, beside, &next, blocks, cudaMemcpyDeviceToHost, error));
        TRY(wait_event(now.done, &engine->is_lost, error));
        memcpy(bytes + now.first * n_bytes, now.pinned, now.n * n_bytes);
        now = next;
    }
    return 0;
}

/* The host fills one half while the device empties the other. */
static int receive(struct cuda_engine *engine, const uint32_t *blocks, size_t n, const char *bytes,
                   struct ifl_error *error)
{
    const struct cuda_beside *beside = &engine->receiving;
    const size_t n_bytes = engine->block_bytes, each = beside->half_blocks;
    for (size_t first = 0; first < n; first += each) {
        const struct portion p = portion_at(engine, beside, first, n);
        if (first >= HALVES * each)
            TRY(wait_event(p.done, &engine->is_lost, error));
        memcpy(p.pinned, bytes + first * n_bytes, p.n * n_bytes);
        TRY(enqueue(engine, beside, &p, blocks, cudaMemcpyHostToDevice, error));
    }
    return wait_stream(beside->stream, &engine->is_lost, error);
}

/* Whatever fails: nothing reads or writes the pinned memory any more. */
static void drain(struct cuda_engine *engine, const struct cuda_beside *beside)
{
    struct ifl_error dropped;
    if (!engine->is_lost)
        (void)wait_stream(beside->stream, &engine->is_lost, &dropped);
}

int cuda_send_blocks(void *self, const uint32_t *blocks, size_t n, void *bytes,
                     struct ifl_error *error)
{
    struct cuda_engine *engine = self;
    TRY(blocks_check(&engine->limits, blocks, n, error));
    const int rc = n > 0 ? send(engine, blocks, n, bytes, error) : 0;
    if (rc < 0)
        drain(engine, &engine->sending);
    return rc;
}

int cuda_receive_blocks(void *self, const uint32_t *blocks, size_t n, const void *bytes,
                        struct ifl_error *error)
{
    struct cuda_engine *engine = self;
    TRY(blocks_check(&engine->limits, blocks, n, error));
    const int rc = receive(engine, blocks, n, bytes, error);
    if (rc < 0)
        drain(engine, &engine->receiving);
    return rc;
}
