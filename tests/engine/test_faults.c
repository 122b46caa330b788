/* Every failure gives one line: no memory at any allocation, damaged weights, steps beyond the
 * limits that the engine was opened with. Under AddressSanitizer no failure leaks.
 *
 * The linker wraps the allocator (--wrap) for inflight's objects, not for libraries. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"
#include "host_memory.h"
#include "run/executor_engine.h"

void __real_host_memory_read(const char *root, struct host_memory *memory);
void __wrap_host_memory_read(const char *root, struct host_memory *memory);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);

static size_t n_allocations, failing; /* number of the allocation that fails, 0: none */

static bool fails(void)
{
    return ++n_allocations == failing;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t n)
{
    return fails() ? NULL : __real_realloc(old, n);
}

static double free_bytes; /* 0: the machine's own value */

void __wrap_host_memory_read(const char *root, struct host_memory *memory)
{
    __real_host_memory_read(root, memory);
    if (free_bytes > 0)
        memory->free_bytes = free_bytes;
}

#define MODEL                                                                                      \
    {                                                                                              \
        .n_layers = 2, .d_model = 32, .n_q_heads = 4, .n_kv_heads = 2, .d_head = 8, .d_ffn = 48,   \
        .n_vocab = 50                                                                              \
    }

static const uint32_t table[32] = {3, 1, 2, 0, 4, 5, 6, 7};

/* ---- no memory ---- */

static int open_and_step(const char *weights_dir, const struct ifl_engine_model *model,
                         struct driver *driver)
{
    int32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8}, n_new = 8;
    struct driven seq = {tokens, 0, table};
    const struct ifl_engine_options options = {.model = *model, .weights_dir = weights_dir};
    int rc = driver_open(driver, &ifl_engine_v1, &options);
    const size_t n_before = n_allocations;
    if (rc == 0)
        rc = driver_step(driver, &seq, &n_new, 1, NULL);
    if (rc == 0)
        cr_expect_eq(n_allocations, n_before, "a step allocates");
    driver_close(driver);
    return rc;
}

/* Linux would allow the allocation and kill the process later. 18720 floats of weights (50 x 32
 * twice, 32, and twice 7744 of a layer) and 1024 blocks of 256. */
Test(faults, what_is_not_free_is_not_taken)
{
    static struct driver driver;
    const struct ifl_engine_model model = MODEL;
    const struct ifl_engine_options options = {.model = model, .n_blocks = 1024};
    free_bytes = 4 * (18720 + 1024 * 256) - 1;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_NOMEM);
    cr_expect_not_null(strstr(driver.error.text, "0.00 of them free"), "%s", driver.error.text);
    cr_expect_null(driver.self);
    free_bytes++;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    driver_close(&driver);
    free_bytes = 0;
}

static void fail_each_allocation(const char *weights_dir, const struct ifl_engine_model *model)
{
    static struct driver driver;
    n_allocations = failing = 0;
    cr_assert_eq(open_and_step(weights_dir, model, &driver), 0, "%s", driver.error.text);
    const size_t n = n_allocations;
    cr_assert_gt(n, 10);
    for (size_t i = 1; i <= n; i++) {
        n_allocations = 0;
        failing = i;
        const int rc = open_and_step(weights_dir, model, &driver);
        cr_expect_lt(rc, 0, "allocation %zu of %zu", i, n);
        cr_expect(*driver.error.text && !strchr(driver.error.text, '\n'));
    }
    failing = 0;
}

Test(faults, no_memory_at_any_place)
{
    const struct ifl_engine_model model = MODEL;
    fail_each_allocation(NULL, &model);
}

/* Four shards and their index. */
Test(faults, no_memory_while_a_checkpoint_is_read)
{
    struct fixture_model fixture;
    fixture_model_load(&fixture, "llama");
    fail_each_allocation(fixture.dir, &fixture.model);
    fixture_model_free(&fixture);
}

/* A prompt and two decodes. */
static int serve(struct executor_engine *x, struct ifl_error *error)
{
    static const uint32_t blocks[2] = {5, 2};
    struct ifl_request request = {.n_seqs = 1, .n_prompt = 5};
    struct ifl_done done;
    int rc = 1;
    for (int32_t n_new = 5, n_context = 0; rc == 1 && n_context < 7; n_new = 1) {
        const struct ifl_work work = {.request = &request,
                                      .n_new = n_new,
                                      .n_context = n_context,
                                      .samples = true,
                                      .blocks = blocks,
                                      .n_blocks = 2};
        const struct ifl_step_desc desc = {.work = &work, .n_work = 1};
        rc = executor_engine_ops.submit(x, &desc, error);
        if (rc == 0)
            rc = executor_engine_ops.next(x, IFL_NEVER, &done, error);
        n_context += n_new;
    }
    return rc;
}

Test(faults, no_memory_for_the_executor)
{
    const struct executor_engine_options options = {
        .engine = &ifl_engine_v1,
        .open = {.model = MODEL,
                 .n_threads = 1,
                 .block_tokens = 4,
                 .n_blocks = 8,
                 .max_tokens = 32,
                 .max_step_tokens = 32,
                 .max_step_seqs = 8},
        .n_requests = 8,
    };
    struct ifl_error error;
    size_t n_failures = 0, n_while_serving = 0;
    for (failing = 1;; failing++) {
        n_allocations = 0;
        struct executor_engine *x = executor_engine_create(&options, 1, &error);
        const int rc = x ? serve(x, &error) : error.code;
        executor_engine_destroy(x);
        if (rc == 1)
            break;
        cr_expect_eq(rc, IFL_E_NOMEM, "allocation %zu: %s", failing, error.text);
        n_failures++;
        n_while_serving += x != NULL;
    }
    cr_expect(n_failures > 20 && n_while_serving > 5, "%zu, %zu", n_failures, n_while_serving);
}

/* ---- steps beyond the limits ---- */

static struct driver driver;
static int32_t tokens[64];
static const struct ifl_engine_options small = {
    .model = MODEL,
    .n_blocks = 8,
    .n_host_blocks = 2,
    .max_tokens = 24,
    .max_step_tokens = 16,
    .max_step_seqs = 2,
};

static void expect_refused(struct driven *seqs, const int32_t *n_new, int32_t n, const char *reason)
{
    cr_expect_eq(driver_step(&driver, seqs, n_new, n, NULL), IFL_E_DEVICE, "%s", reason);
    cr_expect_not_null(strstr(driver.error.text, reason), "%s: %s", reason, driver.error.text);
}

Test(faults, a_step_beyond_a_limit_computes_nothing)
{
    const uint32_t far[8] = {8};
    const struct ifl_copy from_far = {8, 0}, to_far = {0, 2};
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &small), 0, "%s", driver.error.text);
    expect_refused(&(struct driven){tokens, 0, table}, &(int32_t){17}, 1, "tokens: 17");
    expect_refused(&(struct driven){tokens, 20, table}, &(int32_t){5}, 1, "position 24");
    expect_refused(&(struct driven){tokens, 0, far}, &(int32_t){3}, 1, "block 8");
    struct driven three[3] = {{tokens, 0, table}, {tokens, 0, table + 1}, {tokens, 0, table + 2}};
    expect_refused(three, (int32_t[]){1, 1, 1}, 3, "sequences: 3");
    tokens[1] = 50;
    expect_refused(&(struct driven){tokens, 0, table}, &(int32_t){2}, 1, "token 50");
    tokens[1] = -1;
    expect_refused(&(struct driven){tokens, 0, table}, &(int32_t){2}, 1, "token -1");
    driver.step = (struct ifl_engine_step){.outs = &from_far, .n_outs = 1};
    expect_refused(NULL, NULL, 0, "from block 8");
    driver.step = (struct ifl_engine_step){.outs = &to_far, .n_outs = 1};
    expect_refused(NULL, NULL, 0, "to block 2");
    driver.step = (struct ifl_engine_step){.spoilt = &(uint32_t){9}, .n_spoilt = 1};
    expect_refused(NULL, NULL, 0, "spoilt block 9");
    driver.step = (struct ifl_engine_step){.n_outs = 1};
    expect_refused(NULL, NULL, 0, "no array outs");
    /* The driver would count them by their sequences. */
    struct ifl_engine_step orphans = {.n_tokens = 3, .token_ids = tokens, .positions = tokens};
    cr_expect_eq(ifl_engine_v1.step(driver.self, &orphans, &driver.error), IFL_E_DEVICE);
    cr_expect_str_eq(driver.error.text, "the step has 3 tokens of no sequence");
    struct ifl_engine_step bare = {.n_tokens = 1, .n_seqs = 1, .token_ids = tokens};
    cr_expect_eq(ifl_engine_v1.step(driver.self, &bare, &driver.error), IFL_E_DEVICE);
    cr_expect_str_eq(driver.error.text, "the step has no array positions");
    /* The engine still works after the refusals. */
    tokens[1] = 1;
    cr_expect_eq(driver_step(&driver, &(struct driven){tokens, 0, table}, &(int32_t){16}, 1, NULL),
                 0, "%s", driver.error.text);
    driver_close(&driver);
}

/* ---- slots, rows and votes that no sequence has ---- */

/* Two tokens of a sequence of 6 in slots of 10, but for what `asks` says otherwise. */
static void expect_asking_refused(const struct ifl_engine_step *asks, const char *reason)
{
    driver.step = *asks;
    expect_refused(&(struct driven){tokens, 4, table}, &(int32_t){2}, 1, reason);
}

#define ASKS(...) (&(struct ifl_engine_step){__VA_ARGS__})
#define INTS(...) ((const int32_t[]){__VA_ARGS__})

Test(faults, slots_rows_and_votes_are_checked)
{
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &small), 0, "%s", driver.error.text);
    expect_asking_refused(ASKS(.slots = INTS(0, 1)), "no array n_slots");
    expect_asking_refused(ASKS(.slots = INTS(0, 1), .n_slots = INTS(25)), "slots: 25");
    expect_asking_refused(ASKS(.slots = INTS(0, 1), .n_slots = INTS(1)),
                          "too few for its 2 tokens");
    expect_asking_refused(ASKS(.slots = INTS(0, 8), .n_slots = INTS(9)), "too few for 9 slots");
    expect_asking_refused(ASKS(.slots = INTS(5, 5), .n_slots = INTS(6)),
                          "first token of sequence 0 has slot 5, expected 0 to 4");
    expect_asking_refused(ASKS(.slots = INTS(-1, 5), .n_slots = INTS(6)), "has slot -1");
    expect_asking_refused(ASKS(.slots = INTS(4, 4), .n_slots = INTS(6)),
                          "token 1 of sequence 0 has slot 4, expected 5 of 6");
    expect_asking_refused(ASKS(.n_rows = INTS(3)), "3 rows of logits, expected 0 to its 2 tokens");
    expect_asking_refused(ASKS(.n_rows = INTS(-1)), "-1 rows of logits");
    expect_asking_refused(ASKS(.n_voters = INTS(1)), "no array votes");
    expect_asking_refused(ASKS(.n_voters = INTS(3), .votes = &(float){0}), "3 voters");
    expect_asking_refused(ASKS(.adapters = INTS(1)), "adapter 1, the engine was opened for 0");
    expect_asking_refused(ASKS(.adapters = INTS(-1)), "adapter -1");
    driver.step = *ASKS(.adapters = INTS(0), .n_voters = INTS(0), .n_rows = INTS(0));
    cr_expect_eq(driver_step(&driver, &(struct driven){tokens, 0, table}, &(int32_t){4}, 1, NULL),
                 0, "%s", driver.error.text);
    driver_close(&driver);
}

static void expect_keep_refused(const struct ifl_engine_keep *keep, const char *reason)
{
    driver.step = (struct ifl_engine_step){.keeps = keep, .n_keeps = 1};
    expect_refused(NULL, NULL, 0, reason);
}

Test(faults, what_is_kept_is_checked)
{
    static const uint32_t far[2] = {1, 8};
    static int32_t kept[2 * 2 * 2] = {0, 1, 0, 7, 1, 1, 0, 2};
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &small), 0, "%s", driver.error.text);
    expect_keep_refused(&(struct ifl_engine_keep){table, 2, 9, kept}, "9 slots are kept of 2");
    expect_keep_refused(&(struct ifl_engine_keep){table, 2, -1, kept}, "-1 slots are kept of 2");
    expect_keep_refused(&(struct ifl_engine_keep){table, 2, 2, NULL}, "without their arrays");
    expect_keep_refused(&(struct ifl_engine_keep){far, 2, 2, kept}, "block 8");
    kept[5] = 0;
    expect_keep_refused(&(struct ifl_engine_keep){table, 2, 2, kept}, "slot 0 is kept as slot 1");
    kept[5] = 8;
    expect_keep_refused(&(struct ifl_engine_keep){table, 2, 2, kept},
                        "slot 8 is kept as slot 1 of 8");
    driver.step = (struct ifl_engine_step){.n_keeps = 1};
    expect_refused(NULL, NULL, 0, "no array keeps");
    driver_close(&driver);
}

/* Slots do not say how far back they lie. */
Test(faults, slots_go_with_no_window)
{
    struct ifl_engine_options options = small;
    options.window_tokens = 7;
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    expect_asking_refused(ASKS(.slots = INTS(4, 5), .n_slots = INTS(6)), "the last 7 positions");
    driver_close(&driver);
}

Test(faults, blocks_out_of_range_are_neither_read_nor_written)
{
    char bytes[1 << 12] = {0};
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &small), 0, "%s", driver.error.text);
    cr_assert_leq(ifl_engine_v1.block_bytes(driver.self), sizeof bytes);
    for (int pool = IFL_DEVICE_POOL; pool <= IFL_HOST_POOL; pool++) {
        const uint32_t block = pool == IFL_DEVICE_POOL ? 8 : 2;
        cr_expect_eq(ifl_engine_v1.read_block(driver.self, (enum ifl_engine_pool)pool, block, bytes,
                                              &driver.error),
                     IFL_E_DEVICE);
        cr_expect_eq(ifl_engine_v1.write_block(driver.self, (enum ifl_engine_pool)pool, block,
                                               bytes, &driver.error),
                     IFL_E_DEVICE);
        cr_expect_eq(ifl_engine_v1.write_block(driver.self, (enum ifl_engine_pool)pool, block - 1,
                                               bytes, &driver.error),
                     0);
    }
    driver_close(&driver);
}

Test(faults, limits_of_nothing_are_refused)
{
    struct ifl_engine_options options = small;
    options.n_host_blocks = -1;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    options = small;
    options.model.d_head = 7;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    options = small;
    options.model.n_kv_heads = 3;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    options = small;
    options.block_tokens = -4;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    options = small;
    options.dtype = IFL_DTYPE_BF16;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    cr_expect_str_eq(driver.error.text, "dtype is bf16, executor cpu expects auto or fp32");
    options.dtype = (enum ifl_engine_dtype)17; /* of an inflight to come */
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    cr_expect_str_eq(driver.error.text, "dtype is number 17, executor cpu expects auto or fp32");
    options.dtype = options.kv_dtype = IFL_DTYPE_FP32;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), 0);
    driver_close(&driver);
    options.kv_dtype = IFL_DTYPE_FP16;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    cr_expect_str_eq(driver.error.text, "kv_dtype is fp16, executor cpu expects auto, fp32 or fp8");
    options = small;
    options.n_adapters = 2;
    options.adapter_ranks = INTS(8, 0);
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    cr_expect_str_eq(driver.error.text, "adapter 2 has rank 0, expected 1 to 4096");
    options.adapter_ranks = NULL;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    cr_expect_str_eq(driver.error.text, "n_adapters is 2, expected 0 or the number of ranks");
}

Test(faults, a_stop_ends_a_step_and_an_opening)
{
    static volatile sig_atomic_t stop;
    struct ifl_engine_options options = small;
    options.stop = &stop;
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0);
    stop = 1;
    cr_expect_eq(driver_step(&driver, &(struct driven){tokens, 0, table}, &(int32_t){4}, 1, NULL),
                 IFL_E_INTERRUPTED);
    driver_close(&driver);
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INTERRUPTED);
}

/* ---- damaged checkpoints ---- */

/* A copy of the fixture's folder in which `file` has been cut to n_bytes, or written anew. */
static void damage(const struct fixture_model *fixture, const char *dir, const char *file,
                   off_t n_bytes, const char *text)
{
    char command[2048];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", dir, fixture->dir, dir);
    cr_assert_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/%s", dir, file);
    if (text) {
        FILE *out = fopen(command, "w");
        cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
    } else {
        cr_assert_eq(n_bytes < 0 ? unlink(command) : truncate(command, n_bytes), 0);
    }
}

static void expect_no_opening(const struct fixture_model *fixture, const char *dir,
                              const char *reason)
{
    const struct ifl_engine_options options = {.model = fixture->model, .weights_dir = dir};
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT, "%s", reason);
    cr_expect(strstr(driver.error.text, reason) && strstr(driver.error.file, dir), "%s: %s: %s",
              reason, driver.error.file, driver.error.text);
    cr_expect_null(driver.self);
}

Test(faults, damaged_checkpoints_are_named)
{
    struct fixture_model f;
    char dir[] = "/tmp/inflight-weights-XXXXXX", command[64];
    cr_assert_not_null(mkdtemp(dir));
    fixture_model_load(&f, "llama");
    const char *second = "model-00002-of-00004.safetensors",
               *index = "model.safetensors.index.json";
    damage(&f, dir, second, 20000, NULL);
    expect_no_opening(&f, dir, "expected a whole file");
    damage(&f, dir, second, 5, NULL);
    expect_no_opening(&f, dir, "5 bytes, expected a safetensors file");
    damage(&f, dir, second, -1, NULL);
    expect_no_opening(&f, dir, "No such file");
    damage(&f, dir, index, 0, "{\"weight_map\": {\"x\": \"../../../etc/passwd\"}}");
    expect_no_opening(&f, dir, "expected a file of this folder");
    damage(&f, dir, index, 0, "{\"weight_map\": {\"x\": \"model-00001-of-00004.safetensors\"}}");
    expect_no_opening(&f, dir, "there is no tensor model.");
    damage(&f, dir, index, 0,
           "{\"weight_map\": {\"x\": \"model-00001-of-00004.safetensors\","
           "\"model.embed_tokens.weight\": \"model-00002-of-00004.safetensors\"}}");
    expect_no_opening(&f, dir, "there is no tensor model.embed_tokens.weight, expected it");
    damage(&f, dir, index, 0, "{}");
    expect_no_opening(&f, dir, "no weight_map");
    damage(&f, dir, "config.json", 100, NULL);
    expect_no_opening(&f, dir, "expected a JSON object");
    damage(&f, dir, "config.json", 0, "{\"model_type\": \"bert\"}");
    expect_no_opening(&f, dir, "model_type is \"bert\", expected one of");
    damage(&f, dir, "config.json", 0,
           "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 8,"
           "\"num_attention_heads\": 1, \"intermediate_size\": 8, \"vocab_size\": 8,"
           "\"rope_scaling\": {\"type\": \"linear\"}}");
    expect_no_opening(&f, dir, "type is \"linear\", expected \"default\" or \"llama3\"");
    f.model.d_ffn++;
    damage(&f, dir, "config.json", -1, NULL);
    expect_no_opening(&f, dir, "cannot be opened: No such file");
    fixture_model_free(&f);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    cr_assert_eq(system(command), 0);
}
