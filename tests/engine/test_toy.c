/* The smallest engine follows the contract: its sums can be made with a pencil. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../gpu/examples/toy.c"
#include "driver.h"

static struct driver driver;
static const struct ifl_engine_options options = {
    .model = {.n_vocab = 100}, .n_blocks = 8, .n_host_blocks = 4, .max_tokens = 32};
static const uint32_t table[] = {5, 2, 7, 0};
static const int32_t tokens[] = {11, 20, 3, 40, 50, 6, 7, 8};

static void open_driver(void)
{
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
}

/* 11 + 20 + 3 + 40 + 50 = 124; of two sequences the first has three rows, the second one. */
Test(toy, samples_a_token_for_each_row)
{
    const int32_t n_new[] = {5, 2}, n_rows[] = {3, 1}, sums[] = {34, 74, 24, 31};
    struct driven seqs[] = {{tokens, 0, table}, {tokens, 0, table + 2}};
    open_driver();
    driver.step.n_rows = n_rows;
    cr_assert_eq(driver_step(&driver, seqs, n_new, 2, NULL), 0, "%s", driver.error.text);
    cr_expect_arr_eq(driver.sampled, sums, sizeof sums);
    driver_close(&driver);
}

/* Token 6 replaces 20 in slot 1: 110; then 7 goes on behind the last one: 117. */
Test(toy, puts_tokens_into_their_slots)
{
    const int32_t five = 5, two = 2, slots[] = {1, 5}, n_slots = 6;
    struct driven seq = {tokens, 0, table};
    open_driver();
    cr_assert_eq(driver_step(&driver, &seq, &five, 1, NULL), 0, "%s", driver.error.text);
    driver.step.slots = slots;
    driver.step.n_slots = &n_slots;
    driver.step.n_rows = &two;
    cr_assert_eq(driver_step(&driver, &seq, &two, 1, NULL), 0, "%s", driver.error.text);
    cr_expect_eq(driver.sampled[0], 10);
    cr_expect_eq(driver.sampled[1], 17);
    driver_close(&driver);
}

/* Blocks of four tokens: 11 + 20 + 3 + 40 = 74 are in block 5, which goes to block 1. */
Test(toy, exports_and_imports_blocks)
{
    static const uint32_t other[] = {1, 6};
    int32_t block[4];
    const int32_t four = 4, one = 1;
    struct driven seq = {tokens, 0, table};
    open_driver();
    cr_assert_eq(ifl_engine_v1.block_bytes(driver.self), sizeof block);
    cr_assert_eq(driver_step(&driver, &seq, &four, 1, NULL), 0, "%s", driver.error.text);
    cr_assert_eq(ifl_engine_v1.read_block(driver.self, IFL_DEVICE_POOL, 5, block, &driver.error),
                 0);
    cr_expect_arr_eq(block, tokens, sizeof block);
    cr_assert_eq(ifl_engine_v1.write_block(driver.self, IFL_DEVICE_POOL, 1, block, &driver.error),
                 0);
    seq.blocks = other;
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, NULL), 0, "%s", driver.error.text);
    cr_expect_eq(driver.sampled[0], 24);
    driver_close(&driver);
}

Test(toy, refuses_what_it_lacks)
{
    struct ifl_engine_options more = options;
    struct driven seq = {tokens, 0, table};
    const int32_t one = 1;
    more.kv_dtype = IFL_DTYPE_FP16;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &more), IFL_E_INPUT);
    more = options;
    more.n_adapters = 1;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &more), IFL_E_INPUT);
    open_driver();
    driver.step.n_voters = &one;
    cr_expect_eq(driver_step(&driver, &seq, &one, 1, NULL), IFL_E_DEVICE);
    driver.step.adapters = &one;
    cr_expect_eq(driver_step(&driver, &seq, &one, 1, NULL), IFL_E_DEVICE);
    driver.step.n_keeps = 1;
    cr_expect_eq(driver_step(&driver, &seq, &one, 1, NULL), IFL_E_DEVICE);
    cr_expect_eq(driver_step(&driver, &seq, &one, 1, NULL), 0);
    cr_expect_eq(driver.sampled[0], 11);
    driver_close(&driver);
}
