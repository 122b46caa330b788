/* Adapters: sequences with several of them in one step, against the dense reference with the
 * adapter merged into the weights, in double precision. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters.h"
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

/* ---- files ---- */

static const char *const products[N_ADAPTER_TARGETS] = {
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

/* As PEFT writes the random adapter: half of its B, with lora_alpha 2 r. */
static void write_adapter(const char *dir, const struct ifl_engine_options *options,
                          int32_t adapter)
{
    static char header[1 << 16];
    static float numbers[1 << 16];
    char path[600];
    struct adapter_source source;
    struct ifl_error error;
    size_t n = 0, n_header = 0;
    const int32_t rank = options->adapter_ranks[adapter - 1];
    cr_assert_eq(adapter_open(options, adapter, &source, &error), 0);
    n_header += (size_t)sprintf(header, "{");
    for (int32_t layer = 0; layer < options->model.n_layers; layer++)
        for (int i = 0; i < 2 * (ADAPTER_OF_OUT + 1); i++) {
            const struct adapter_place place = {layer, (enum adapter_target)(i / 2), i % 2};
            const struct adapter_matrix matrix = adapter_matrix_of(&options->model, place.target);
            const int32_t rows = place.is_b ? matrix.n_out : rank;
            const int32_t columns = place.is_b ? rank : matrix.n_in;
            const size_t count = (size_t)rows * (size_t)columns;
            adapter_fill(&source, &place, numbers + n, &error);
            for (size_t k = 0; place.is_b && k < count; k++)
                numbers[n + k] /= 2;
            n_header += (size_t)sprintf(
                header + n_header,
                "%s\"base_model.model.model.layers.%d.%s.lora_%c.weight\": {\"dtype\": \"F32\", "
                "\"shape\": [%d, %d], \"data_offsets\": [%zu, %zu]}",
                n_header > 1 ? ", " : "", layer, products[place.target], place.is_b ? 'B' : 'A',
                rows, columns, n * sizeof *numbers, (n + count) * sizeof *numbers);
            n += count;
        }
    adapter_close(&source);
    n_header += (size_t)sprintf(header + n_header, "}");
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", dir);
    FILE *out = fopen(path, "wb");
    const uint64_t length = n_header;
    fwrite(&length, sizeof length, 1, out); /* little endian, as all that this is built for */
    fwrite(header, 1, n_header, out);
    fwrite(numbers, sizeof *numbers, n, out);
    fclose(out);
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    out = fopen(path, "w");
    fprintf(out, "{\"peft_type\": \"LORA\", \"r\": %d, \"lora_alpha\": %d}", rank, 2 * rank);
    fclose(out);
}

static void remove_adapter(const char *dir)
{
    char path[600];
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", dir);
    remove(path);
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    remove(path);
    remove(dir);
}

Test(adapters, of_files)
{
    static const int32_t adapters[N_SEQS] = {1, 0, 2, 3, 3}, n_new[N_SEQS] = {40, 7, 30, 1, 50};
    char dirs[N_ADAPTERS][64];
    const char *borrowed[N_ADAPTERS];
    struct driven seqs[N_SEQS];
    start("qwen3", IFL_ADAPTER_QKVO);
    struct ifl_engine_options options = options_of(IFL_ADAPTER_QKVO);
    for (int32_t i = 0; i < N_ADAPTERS; i++) {
        snprintf(dirs[i], sizeof dirs[i], "/tmp/adapter-XXXXXX");
        ifl_require(mkdtemp(dirs[i]));
        write_adapter(dirs[i], &options, i + 1);
        borrowed[i] = dirs[i];
    }
    driver_close(&driver);
    options.adapter_dirs = borrowed;
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    for (size_t i = 0; i < N_SEQS; i++)
        seqs[i] = (struct driven){f.tokens, 0, tables[i]};
    driver.step.adapters = adapters;
    cr_assert_eq(driver_step(&driver, seqs, n_new, N_SEQS, logits), 0, "%s", driver.error.text);
    expect_rows(seqs, adapters, IFL_ADAPTER_QKVO);
    driver_close(&driver);
    /* another rank, other products, no folder */
    options.adapter_ranks = (const int32_t[]){1, 8, 4};
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    cr_expect_not_null(strstr(driver.error.text, "r is 3, expected 4"), "%s", driver.error.text);
    options.adapter_ranks = ranks;
    options.adapter_matrices = IFL_ADAPTER_QV;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    cr_expect_not_null(strstr(driver.error.text, "is no A or B of adapters.matrices"), "%s",
                       driver.error.text);
    for (int32_t i = 0; i < N_ADAPTERS; i++)
        remove_adapter(dirs[i]);
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    fixture_model_free(&f);
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
