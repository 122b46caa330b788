/* Adapters: sequences with several of them in one step, against the dense reference with the
 * adapter merged into the weights, in double precision. */
#include <criterion/criterion.h>
#include <string.h>

#include "dense.h"

enum { N = 80, MAX_VOCAB = 64, TABLE = 20, N_ADAPTERS = 3, N_SEQS = 5 };
static const double TOLERANCE = 1e-5;
static const int32_t ranks[N_ADAPTERS] = {1, 8, 3};

static struct driver driver;
static struct fixture_model f;
static float logits[N_SEQS * MAX_VOCAB];
static uint32_t tables[N_SEQS][TABLE];

static struct ifl_engine_options options_of(enum ifl_engine_adapter_matrices matrices)
{
    return (struct ifl_engine_options){.model = f.model,
                                       .weights_dir = f.dir,
                                       .seed = 11,
                                       .n_adapters = N_ADAPTERS,
                                       .adapter_ranks = ranks,
                                       .adapter_matrices = matrices,
                                       .n_threads = 1};
}

static void start(const char *name, enum ifl_engine_adapter_matrices matrices)
{
    fixture_model_load(&f, name);
    ifl_require(f.n_tokens == N && f.model.n_vocab <= MAX_VOCAB);
    const struct ifl_engine_options options = options_of(matrices);
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    for (uint32_t i = 0; i < N_SEQS * TABLE; i++)
        tables[i / TABLE][i % TABLE] = i * 211 % 512;
}

static void end(void)
{
    driver_close(&driver);
    fixture_model_free(&f);
}

/* The last token of each sequence, with its adapter. */
static void expect_rows(const struct driven *seqs, const int32_t *adapters,
                        enum ifl_engine_adapter_matrices matrices)
{
    const struct ifl_engine_options options = options_of(matrices);
    const size_t n = (size_t)f.model.n_vocab;
    struct dense plain;
    dense_run(&plain, &f, NULL, NULL);
    for (size_t i = 0; i < N_SEQS; i++) {
        struct dense dense;
        const struct dense_how how = {.adapted = adapters[i] > 0 ? &options : NULL,
                                      .adapter = adapters[i]};
        const size_t last = (size_t)seqs[i].n_computed - 1;
        dense_run_as(&dense, &f, &how);
        const double error = relative_error(logits + i * n, dense.logits + last * n, n);
        const double change = relative_error(dense.logits + last * n, plain.logits + last * n, n);
        cr_expect(error < TOLERANCE, "%s, sequence %zu, adapter %d: relative error %g", f.dir, i,
                  adapters[i], error);
        cr_expect(adapters[i] == 0 ? change == 0 : change > 1000 * TOLERANCE,
                  "adapter %d changes the logits by %g", adapters[i], change);
        dense_free(&dense);
    }
    dense_free(&plain);
}

static void expect_mixed(const char *name, enum ifl_engine_adapter_matrices matrices)
{
    static const int32_t adapters[N_SEQS] = {2, 0, 3, 3, 1};
    static const int32_t n_first[N_SEQS] = {40, 7, 30, 1, 50}, n_second[N_SEQS] = {1, 30, 1, 20, 1};
    struct driven seqs[N_SEQS];
    start(name, matrices);
    for (size_t i = 0; i < N_SEQS; i++)
        seqs[i] = (struct driven){f.tokens, 0, tables[i]};
    driver.step.adapters = adapters;
    cr_assert_eq(driver_step(&driver, seqs, n_first, N_SEQS, logits), 0, "%s", driver.error.text);
    expect_rows(seqs, adapters, matrices);
    driver.step.adapters = adapters;
    cr_assert_eq(driver_step(&driver, seqs, n_second, N_SEQS, logits), 0, "%s", driver.error.text);
    expect_rows(seqs, adapters, matrices);
    end();
}

Test(adapters, of_query_and_value)
{
    expect_mixed("qwen3", IFL_ADAPTER_QV);
}
Test(adapters, of_attention)
{
    expect_mixed("qwen3", IFL_ADAPTER_QKVO);
}
Test(adapters, of_all_products)
{
    expect_mixed("qwen2", IFL_ADAPTER_ALL);
}

Test(adapters, ranks_are_checked)
{
    static const int32_t none[] = {4, 0};
    void *self = NULL;
    start("qwen3", IFL_ADAPTER_QV);
    struct ifl_engine_options options = driver.options;
    options.n_adapters = 2;
    options.adapter_ranks = none;
    cr_expect_eq(ifl_engine_v1.open(&options, &self, &driver.error), IFL_E_INPUT);
    cr_expect_not_null(strstr(driver.error.text, "adapter 2 has rank 0"), "%s", driver.error.text);
    cr_expect_null(self);
    end();
}
