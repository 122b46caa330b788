/* The smallest engine: the next token is the sum of all that a sequence holds.
 *
 * The pool holds the token itself where a real engine keeps its K and V. A sum over the block table
 * stands for attention. The toy refuses what it lacks: data types,
 * adapters, logits, votes, K/V kept by heads. The file shows every input and output of an engine:
 *
 *     cc -std=c17 -shared -fPIC -Iinclude gpu/examples/toy.c -o inflight_cpu.so
 *     INFLIGHT_ENGINE_DIR=. build/inflight run configs/replay-cpu.yaml
 */
#include <inflight/engine.h>
#include <string.h>

struct toy {
    struct ifl_engine_options limits;
    int32_t *device, *host; /* [blocks][block_tokens] */
};

static size_t block_bytes(const void *self)
{
    const struct toy *toy = self;
    return (size_t)toy->limits.block_tokens * sizeof *toy->device;
}

static void close_toy(void *self)
{
    struct toy *toy = self;
    if (!toy)
        return;
    free(toy->device);
    free(toy->host);
    free(toy);
}

static int open_toy(const struct ifl_engine_options *options, void **self, struct ifl_error *error)
{
    if (options->dtype || options->kv_dtype || options->n_adapters)
        return ifl_fail(error, IFL_E_INPUT,
                        "dtype, kv_dtype or n_adapters is set, the toy expects none of them");
    struct toy *toy = calloc(1, sizeof *toy);
    if (!toy)
        return ifl_fail_nomem(error);
    toy->limits = *options;
    toy->device = calloc((size_t)options->n_blocks, block_bytes(toy));
    toy->host = calloc((size_t)options->n_host_blocks + 1, block_bytes(toy));
    *self = toy;
    if (toy->device && toy->host)
        return 0;
    close_toy(toy);
    *self = NULL;
    return ifl_fail_nomem(error);
}

/* ---- blocks ---- */

static int32_t *block_at(const struct toy *toy, int32_t *pool, uint32_t block)
{
    return pool + (size_t)block * (size_t)toy->limits.block_tokens;
}

static void copy(const struct toy *toy, int32_t *to, int32_t *from, const struct ifl_copy *copies,
                 size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(block_at(toy, to, copies[i].to), block_at(toy, from, copies[i].from),
               block_bytes(toy));
}

/* The place of a slot's K and V. */
static int32_t *slot_at(const struct toy *toy, const uint32_t *table, int32_t slot)
{
    const int32_t block_tokens = toy->limits.block_tokens;
    return block_at(toy, toy->device, table[slot / block_tokens]) + slot % block_tokens;
}

/* ---- a step ---- */

/* Writes a token for each of the sequence's rows; returns where the next sequence's rows begin. */
static int32_t *compute(const struct toy *toy, const struct ifl_engine_step *step, int32_t seq,
                        int32_t *sampled)
{
    const int32_t first = step->first_token[seq], end = step->first_token[seq + 1];
    const int32_t *slots = step->slots ? step->slots : step->positions;
    const int32_t n_slots = step->slots ? step->n_slots[seq] : step->positions[end - 1] + 1;
    const uint32_t *table = step->block_ids + step->first_block[seq];
    for (int32_t i = first; i < end; i++)
        *slot_at(toy, table, slots[i]) = step->token_ids[i];
    for (int32_t i = end - (step->n_rows ? step->n_rows[seq] : 0); i < end; i++) {
        int64_t sum = 0;
        for (int32_t slot = 0; slot < n_slots - (end - 1 - i); slot++)
            sum += *slot_at(toy, table, slot);
        *sampled++ = (int32_t)(sum % toy->limits.model.n_vocab);
    }
    return sampled;
}

static int run_step(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    const struct toy *toy = self;
    int32_t *sampled = step->sampled;
    /* A real engine checks the whole step before it changes any memory. */
    if (step->logits || step->n_voters || step->adapters || step->n_keeps)
        return ifl_fail(error, IFL_E_DEVICE, "the toy has no logits, votes, adapters or heads");
    copy(toy, toy->host, toy->device, step->outs, step->n_outs);
    copy(toy, toy->device, toy->host, step->ins, step->n_ins);
    copy(toy, toy->device, toy->device, step->copies, step->n_copies);
    for (size_t i = 0; i < step->n_spoilt; i++)
        memset(block_at(toy, toy->device, step->spoilt[i]), 0xff, block_bytes(toy));
    for (int32_t seq = 0; seq < step->n_seqs; seq++)
        sampled = compute(toy, step, seq, sampled);
    step->device_ns = 0;
    return 0;
}

static int read_block(void *self, enum ifl_engine_pool pool, uint32_t block, void *bytes,
                      struct ifl_error *error)
{
    const struct toy *toy = self;
    (void)error;
    memcpy(bytes, block_at(toy, pool == IFL_DEVICE_POOL ? toy->device : toy->host, block),
           block_bytes(toy));
    return 0;
}

static int write_block(void *self, enum ifl_engine_pool pool, uint32_t block, const void *bytes,
                       struct ifl_error *error)
{
    const struct toy *toy = self;
    (void)error;
    memcpy(block_at(toy, pool == IFL_DEVICE_POOL ? toy->device : toy->host, block), bytes,
           block_bytes(toy));
    return 0;
}

const struct ifl_engine ifl_engine_v1 = {
    .abi = IFL_ENGINE_ABI,
    .engine_bytes = sizeof(struct ifl_engine),
    .options_bytes = sizeof(struct ifl_engine_options),
    .step_bytes = sizeof(struct ifl_engine_step),
    .name = "cpu",
    .open = open_toy,
    .step = run_step,
    .block_bytes = block_bytes,
    .read_block = read_block,
    .write_block = write_block,
    .close = close_toy,
};
