/* Blocks, swapped, copied and spoilt in the engine's memory. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static void open_with_prompt(struct driver *driver, struct driven *seq, float *logits)
{
    cr_assert_eq(small_open(driver, &ifl_engine_v1, seq, logits), 0, "%s", driver->error.text);
}

static void read_block(struct driver *driver, enum ifl_engine_pool pool, uint32_t block, void *to)
{
    cr_assert_eq(driver->engine->read_block(driver->self, pool, block, to, &driver->error), 0);
}

static void *read_blocks(struct driver *driver, const uint32_t *blocks)
{
    const size_t n = driver->engine->block_bytes(driver->self);
    char *bytes = malloc(SMALL_HOME * n);
    for (size_t i = 0; i < SMALL_HOME; i++)
        read_block(driver, IFL_DEVICE_POOL, blocks[i], bytes + i * n);
    return bytes;
}

static size_t all_bytes(const struct driver *driver)
{
    return SMALL_HOME * driver->engine->block_bytes(driver->self);
}

/* layers x K and V x KV heads x tokens x dim x 4 bytes */
Test(blocks, have_the_size_their_layout_says)
{
    struct driver driver;
    struct driven seq;
    open_with_prompt(&driver, &seq, NULL);
    cr_expect_eq(driver.engine->block_bytes(driver.self), 3 * 2 * 2 * 4 * 8 * 4);
    driver_close(&driver);
}

Test(blocks, come_back_bit_for_bit)
{
    struct driver driver;
    struct driven seq;
    float straight[SMALL_VOCAB], swapped[SMALL_VOCAB];
    struct ifl_copy outs[SMALL_HOME], ins[SMALL_HOME];
    const int32_t one = 1;
    open_with_prompt(&driver, &seq, NULL);
    void *before = read_blocks(&driver, small_home);
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, straight), 0);
    for (uint32_t i = 0; i < SMALL_HOME; i++) {
        outs[i] = (struct ifl_copy){small_home[i], 7 - i};
        ins[i] = (struct ifl_copy){7 - i, small_other_home[i]};
    }
    /* A step without tokens: the blocks are swapped out, and their old places spoilt. */
    driver.step = (struct ifl_engine_step){
        .outs = outs, .n_outs = SMALL_HOME, .spoilt = small_home, .n_spoilt = SMALL_HOME};
    cr_assert_eq(driver_step(&driver, NULL, NULL, 0, NULL), 0, "%s", driver.error.text);
    driver.step = (struct ifl_engine_step){.ins = ins, .n_ins = SMALL_HOME};
    seq = (struct driven){small_tokens(), SMALL_PROMPT, small_other_home};
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, swapped), 0, "%s", driver.error.text);
    cr_expect_eq(memcmp(straight, swapped, sizeof straight), 0, "the same K/V, the same logits");
    /* Compares the tokens computed before the swap; block 5 has got one more since. */
    void *after = read_blocks(&driver, small_other_home);
    cr_expect_eq(memcmp(before, after, all_bytes(&driver) / SMALL_HOME * (SMALL_HOME - 1)), 0);
    free(before);
    free(after);
    driver_close(&driver);
}

Test(blocks, swap_out_before_they_swap_in)
{
    struct driver driver;
    struct driven seq;
    open_with_prompt(&driver, &seq, NULL);
    const size_t n = driver.engine->block_bytes(driver.self);
    void *was = malloc(n), *is = malloc(n);
    read_block(&driver, IFL_DEVICE_POOL, 9, was);
    /* Block 9 goes to host block 0 and returns as block 11, all in one step. */
    const struct ifl_copy out = {9, 0}, in = {0, 11};
    driver.step = (struct ifl_engine_step){.outs = &out, .n_outs = 1, .ins = &in, .n_ins = 1};
    cr_assert_eq(driver_step(&driver, NULL, NULL, 0, NULL), 0);
    read_block(&driver, IFL_HOST_POOL, 0, is);
    cr_expect_eq(memcmp(was, is, n), 0);
    read_block(&driver, IFL_DEVICE_POOL, 11, is);
    cr_expect_eq(memcmp(was, is, n), 0);
    free(was);
    free(is);
    driver_close(&driver);
}

Test(blocks, are_copied_on_the_device)
{
    struct driver driver;
    struct driven seq;
    float straight[SMALL_VOCAB], copied[SMALL_VOCAB];
    struct ifl_copy copies[SMALL_HOME];
    const int32_t one = 1;
    open_with_prompt(&driver, &seq, NULL);
    for (uint32_t i = 0; i < SMALL_HOME; i++)
        copies[i] = (struct ifl_copy){small_home[i], small_other_home[i]};
    struct driven copy = {small_tokens(), SMALL_PROMPT, small_other_home};
    driver.step = (struct ifl_engine_step){.copies = copies, .n_copies = SMALL_HOME};
    cr_assert_eq(driver_step(&driver, &copy, &one, 1, copied), 0);
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, straight), 0);
    cr_expect_eq(memcmp(straight, copied, sizeof straight), 0);
    driver_close(&driver);
}

Test(blocks, without_an_owner_are_never_read)
{
    struct driver driver;
    struct driven seq;
    float clean[SMALL_VOCAB], spoilt[SMALL_VOCAB];
    uint32_t others[SMALL_BLOCKS];
    const size_t n = small_others(others);
    int32_t n_new = 2;
    open_with_prompt(&driver, &seq, NULL);
    cr_assert_eq(driver_step(&driver, &seq, &n_new, 1, clean), 0);
    seq.n_computed = 0; /* once more, from NaN */
    n_new = SMALL_PROMPT + 2;
    driver.step = (struct ifl_engine_step){.spoilt = small_home, .n_spoilt = SMALL_HOME};
    cr_assert_eq(driver_step(&driver, NULL, NULL, 0, NULL), 0);
    driver.step = (struct ifl_engine_step){.spoilt = others, .n_spoilt = n};
    cr_assert_eq(driver_step(&driver, &seq, &n_new, 1, spoilt), 0);
    cr_expect(relative_error(spoilt, clean, SMALL_VOCAB) < 1e-5);
    driver_close(&driver);
}
