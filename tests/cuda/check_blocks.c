#include "check_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "verdict.h"

/* As in check_engine.c: bf16 keeps 8 bits. */
static const double TOLERANCE = 1e-2;

static struct driver *driver;
static enum ifl_engine_dtype kv_dtype;

static void open_with_prompt(struct driven *seq, float *logits)
{
    struct ifl_engine_options options = small_options;
    const int32_t prompt = SMALL_PROMPT;
    options.kv_dtype = kv_dtype;
    must(driver, driver_open(driver, &ifl_engine_v1, &options));
    *seq = (struct driven){small_tokens(), 0, small_home};
    must(driver, driver_step(driver, seq, &prompt, 1, logits));
}

static void *read_block(enum ifl_engine_pool pool, uint32_t block)
{
    void *bytes = malloc(driver->engine->block_bytes(driver->self));
    ifl_require(bytes);
    must(driver, driver->engine->read_block(driver->self, pool, block, bytes, &driver->error));
    return bytes;
}

static bool same(void *a, void *b)
{
    const bool is = memcmp(a, b, driver->engine->block_bytes(driver->self)) == 0;
    free(a);
    free(b);
    return is;
}

/* Blocks are swapped out, spoilt, and swapped in elsewhere; meanwhile another sequence computes in
 * the freed blocks. */
static void blocks_come_back(void)
{
    struct driven seq;
    float straight[SMALL_VOCAB], swapped[SMALL_VOCAB];
    struct ifl_copy outs[SMALL_HOME], ins[SMALL_HOME];
    const int32_t one = 1, many = 10;
    open_with_prompt(&seq, NULL);
    void *before[SMALL_HOME];
    bool ok = true;
    for (uint32_t i = 0; i < SMALL_HOME; i++)
        before[i] = read_block(IFL_DEVICE_POOL, small_home[i]);
    must(driver, driver_step(driver, &seq, &one, 1, straight));
    for (uint32_t i = 0; i < SMALL_HOME; i++) {
        outs[i] = (struct ifl_copy){small_home[i], 7 - i};
        ins[i] = (struct ifl_copy){7 - i, small_other_home[i]};
    }
    struct driven neighbour = {small_tokens() + 30, 0,
                               small_home}; /* the plan uses what it frees */
    driver->step = (struct ifl_engine_step){.outs = outs, .n_outs = SMALL_HOME};
    must(driver, driver_step(driver, &neighbour, &many, 1, NULL));
    driver->step = (struct ifl_engine_step){.spoilt = small_home, .n_spoilt = SMALL_HOME};
    must(driver, driver_step(driver, NULL, NULL, 0, NULL));
    driver->step = (struct ifl_engine_step){.ins = ins, .n_ins = SMALL_HOME};
    seq = (struct driven){small_tokens(), SMALL_PROMPT, small_other_home};
    must(driver, driver_step(driver, &seq, &one, 1, swapped));
    verdict(memcmp(straight, swapped, sizeof straight) == 0, "swapped: the same logits");
    for (uint32_t i = 0; i + 1 < SMALL_HOME; i++) /* the last has one more token since */
        ok = same(before[i], read_block(IFL_DEVICE_POOL, small_other_home[i])) && ok;
    verdict(ok, "swapped: the same bits");
    free(before[SMALL_HOME - 1]);
    driver_close(driver);
}

/* Block 9 goes to host block 0 and returns as block 11 while others are swapped out. */
static void blocks_go_out_before_in(void)
{
    struct driven seq;
    open_with_prompt(&seq, NULL);
    void *nine = read_block(IFL_DEVICE_POOL, 9), *two = read_block(IFL_DEVICE_POOL, 2);
    const struct ifl_copy outs[] = {{9, 0}, {2, 1}}, in[] = {{0, 11}, {1, 9}};
    driver->step = (struct ifl_engine_step){.outs = outs, .n_outs = 2, .ins = in, .n_ins = 2};
    must(driver, driver_step(driver, NULL, NULL, 0, NULL));
    verdict(same(nine, read_block(IFL_DEVICE_POOL, 11)), "out before in, through one host block");
    verdict(same(two, read_block(IFL_DEVICE_POOL, 9)), "out before in, into a block that left");
    driver_close(driver);
}

/* Swap-outs in a step without work, and beside a sequence that touches none of the blocks. */
static void blocks_go_out_alone(void)
{
    struct driven seq, neighbour = {small_tokens() + 30, 0, small_other_home};
    const struct ifl_copy two = {2, 5}, nine = {9, 3};
    const int32_t many = 10;
    open_with_prompt(&seq, NULL);
    driver->step = (struct ifl_engine_step){.outs = &two, .n_outs = 1};
    must(driver, driver_step(driver, NULL, NULL, 0, NULL));
    verdict(same(read_block(IFL_DEVICE_POOL, 2), read_block(IFL_HOST_POOL, 5)), "out alone");
    driver->step = (struct ifl_engine_step){.outs = &nine, .n_outs = 1};
    must(driver, driver_step(driver, &neighbour, &many, 1, NULL));
    verdict(same(read_block(IFL_DEVICE_POOL, 9), read_block(IFL_HOST_POOL, 3)), "out beside");
    driver_close(driver);
}

/* Exported, and imported to other blocks of the device pool and to the host pool. */
static void blocks_are_carried(void)
{
    struct driven seq;
    float straight[SMALL_VOCAB], carried[SMALL_VOCAB];
    const int32_t one = 1;
    open_with_prompt(&seq, NULL);
    const size_t n_bytes = driver->engine->block_bytes(driver->self);
    bool ok = true;
    for (uint32_t i = 0; i < SMALL_HOME; i++) {
        void *bytes = read_block(IFL_DEVICE_POOL, small_home[i]);
        must(driver, driver->engine->write_block(driver->self, IFL_DEVICE_POOL, small_other_home[i],
                                                 bytes, &driver->error));
        must(driver,
             driver->engine->write_block(driver->self, IFL_HOST_POOL, i, bytes, &driver->error));
        void *host = read_block(IFL_HOST_POOL, i);
        ok = memcmp(bytes, host, n_bytes) == 0 && ok;
        free(host);
        free(bytes);
    }
    must(driver, driver_step(driver, &seq, &one, 1, straight));
    seq = (struct driven){small_tokens(), SMALL_PROMPT, small_other_home};
    must(driver, driver_step(driver, &seq, &one, 1, carried));
    verdict(memcmp(straight, carried, sizeof straight) == 0, "carried: the same logits");
    verdict(ok, "carried to the host pool: the same bits");
    char *bytes = calloc(1, n_bytes);
    verdict(driver->engine->write_block(driver->self, IFL_DEVICE_POOL, SMALL_BLOCKS, bytes,
                                        &driver->error) == IFL_E_DEVICE,
            "refused: %s", driver->error.text);
    free(bytes);
    driver_close(driver);
}

/* Copies 9 -> 12 -> 13 in one step; block 9 is overwritten afterwards. */
static void blocks_are_copied_in_order(void)
{
    struct driven seq;
    open_with_prompt(&seq, NULL);
    void *nine = read_block(IFL_DEVICE_POOL, 9), *two = read_block(IFL_DEVICE_POOL, 2);
    const struct ifl_copy copies[] = {{9, 12}, {12, 13}, {2, 9}, {9, 9}};
    driver->step = (struct ifl_engine_step){.copies = copies, .n_copies = 4};
    must(driver, driver_step(driver, NULL, NULL, 0, NULL));
    verdict(same(nine, read_block(IFL_DEVICE_POOL, 13)), "copied through a chain");
    verdict(same(two, read_block(IFL_DEVICE_POOL, 9)), "copied over what was read before");
    driver_close(driver);
}

static void spoilt_blocks_are_not_read(void)
{
    struct driven seq;
    float clean[SMALL_VOCAB], spoilt[SMALL_VOCAB];
    uint32_t others[SMALL_BLOCKS];
    const size_t n = small_others(others);
    int32_t n_new = 2;
    open_with_prompt(&seq, NULL);
    must(driver, driver_step(driver, &seq, &n_new, 1, clean));
    seq.n_computed = 0;
    n_new = SMALL_PROMPT + 2;
    driver->step = (struct ifl_engine_step){.spoilt = small_home, .n_spoilt = SMALL_HOME};
    must(driver, driver_step(driver, NULL, NULL, 0, NULL));
    uint16_t *bits = read_block(IFL_DEVICE_POOL, 9);
    verdict(*bits == 0xffff, "spoilt: NaN"); /* in bf16, and twice in e4m3 */
    free(bits);
    driver->step = (struct ifl_engine_step){.spoilt = others, .n_spoilt = n};
    must(driver, driver_step(driver, &seq, &n_new, 1, spoilt));
    const double error = relative_error(spoilt, clean, SMALL_VOCAB);
    verdict(error < TOLERANCE, "spoilt: it is not read, error %.1e", error);
    driver_close(driver);
}

/* ---- beside steps ---- */

enum { N_SENT = 60 }; /* more than are copied at a time */

/* Blocks are sent, some of them several times, and received elsewhere, as they are. */
static void blocks_move_beside_steps(void)
{
    struct driven seq;
    float straight[SMALL_VOCAB], moved[SMALL_VOCAB];
    const int32_t one = 1;
    uint32_t sent[N_SENT];
    bool ok = true;
    open_with_prompt(&seq, NULL);
    const size_t n_bytes = driver->engine->block_bytes(driver->self);
    char *bytes = calloc(N_SENT, n_bytes);
    ifl_require(bytes);
    for (uint32_t i = 0; i < N_SENT; i++)
        sent[i] = i * 7 % SMALL_BLOCKS;
    must(driver, driver->engine->send_blocks(driver->self, sent, N_SENT, bytes, &driver->error));
    for (uint32_t i = 0; i < N_SENT; i++) {
        void *block = read_block(IFL_DEVICE_POOL, sent[i]);
        ok = memcmp(block, bytes + i * n_bytes, n_bytes) == 0 && ok;
        free(block);
    }
    verdict(ok, "sent: the same bits");
    must(driver, driver_step(driver, &seq, &one, 1, straight));
    must(driver,
         driver->engine->send_blocks(driver->self, small_home, SMALL_HOME, bytes, &driver->error));
    must(driver, driver->engine->receive_blocks(driver->self, small_other_home, SMALL_HOME, bytes,
                                                &driver->error));
    seq = (struct driven){small_tokens(), SMALL_PROMPT, small_other_home};
    must(driver, driver_step(driver, &seq, &one, 1, moved));
    verdict(memcmp(straight, moved, sizeof straight) == 0, "received: the same logits");
    free(bytes);
    driver_close(driver);
}

/* The last one that is received stays, in the order of the list. */
static void blocks_are_received_in_order(void)
{
    struct driven seq;
    uint32_t to[N_SENT];
    bool ok = true;
    open_with_prompt(&seq, NULL);
    const size_t n_bytes = driver->engine->block_bytes(driver->self);
    char *bytes = calloc(N_SENT, n_bytes);
    ifl_require(bytes);
    for (uint32_t i = 0; i < N_SENT; i++) {
        to[i] = i * 5 % SMALL_BLOCKS;
        memset(bytes + i * n_bytes, (int)i + 1, n_bytes);
    }
    must(driver, driver->engine->receive_blocks(driver->self, to, N_SENT, bytes, &driver->error));
    for (uint32_t i = N_SENT - SMALL_BLOCKS; i < N_SENT; i++) {
        void *block = read_block(IFL_DEVICE_POOL, to[i]);
        ok = memcmp(block, bytes + i * n_bytes, n_bytes) == 0 && ok;
        free(block);
    }
    verdict(ok, "received: the last of several");
    must(driver, driver->engine->receive_blocks(driver->self, to, 0, NULL, &driver->error));
    must(driver, driver->engine->send_blocks(driver->self, to, 0, NULL, &driver->error));
    to[3] = SMALL_BLOCKS;
    verdict(driver->engine->receive_blocks(driver->self, to, 4, bytes, &driver->error) ==
                IFL_E_DEVICE,
            "refused: %s", driver->error.text);
    verdict(driver->engine->send_blocks(driver->self, to, 4, bytes, &driver->error) == IFL_E_DEVICE,
            "refused: %s", driver->error.text);
    free(bytes);
    driver_close(driver);
}

void check_blocks(struct driver *of, enum ifl_engine_dtype kv)
{
    driver = of;
    kv_dtype = kv;
    blocks_come_back();
    blocks_go_out_before_in();
    blocks_go_out_alone();
    blocks_are_copied_in_order();
    blocks_are_carried();
    spoilt_blocks_are_not_read();
    blocks_move_beside_steps();
    blocks_are_received_in_order();
}
