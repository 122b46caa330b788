/* Checkpoints with a contradiction: tied embeddings beside a head, numbers that are NaN or
 * infinite. Expected results are those of a checkpoint without the contradiction. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"
#include "weights.h"

enum { VOCAB = 50, MAX_WEIGHT = 4096 };

static const struct ifl_engine_model shape = {.n_layers = 2,
                                              .d_model = 32,
                                              .n_q_heads = 4,
                                              .n_kv_heads = 2,
                                              .d_head = 8,
                                              .d_ffn = 48,
                                              .n_vocab = VOCAB};

/* ---- writing one ---- */

static char dir[64];

static void path_in(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", dir, name);
}

static void make_folder(void)
{
    snprintf(dir, sizeof dir, "/tmp/inflight-checkpoint-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    cr_assert_eq(system(command), 0);
}

TestSuite(checkpoint, .init = make_folder, .fini = remove_folder);

struct writing {
    FILE *header, *data;
    size_t at;
    const char *without,
        *head_as;      /* a tensor to leave out; a tensor with numbers to use as the head */
    const char *poked; /* a tensor that gets `poke` as its first number */
    float poke;
};

static int write_one(void *context, const struct weight *weight, struct ifl_error *error)
{
    struct writing *w = context;
    static float numbers[MAX_WEIGHT];
    const bool as_embedding = w->head_as && weight->role == WEIGHT_HEAD;
    const struct weight_source source = {.seed = 11, .n_threads = 1};
    struct weight from = *weight;
    if (w->without && strcmp(w->without, weight->name) == 0)
        return 0;
    ifl_require(weight->n_numbers <= MAX_WEIGHT);
    if (as_embedding)
        from.role = WEIGHT_EMBEDDING;
    weight_fill(&source, &from, numbers, error);
    if (w->poked && strcmp(w->poked, weight->name) == 0)
        numbers[0] = w->poke;
    const size_t n_bytes = weight->n_numbers * sizeof *numbers;
    fprintf(w->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%lld", w->at ? "," : "{",
            weight->name, (long long)weight->n_rows);
    if (weight->n_columns)
        fprintf(w->header, ",%lld", (long long)weight->n_columns);
    fprintf(w->header, "],\"data_offsets\":[%zu,%zu]}", w->at, w->at + n_bytes);
    cr_assert_eq(fwrite(numbers, 1, n_bytes, w->data), n_bytes);
    w->at += n_bytes;
    return 0;
}

/* Writes all weights of the shape and the head, even if config.json ties the embeddings. */
static void write_checkpoint(bool tied, struct writing w)
{
    char *header, *data, path[128];
    size_t n_header, n_data;
    struct ifl_error error;
    w.header = open_memstream(&header, &n_header);
    w.data = open_memstream(&data, &n_data);
    cr_assert(w.header && w.data);
    weights_for_each(&shape, write_one, &w, &error);
    fputc('}', w.header);
    cr_assert(fclose(w.header) == 0 && fclose(w.data) == 0);
    path_in(path, "model.safetensors");
    FILE *file = fopen(path, "w");
    const uint64_t n = n_header;
    cr_assert(file && fwrite(&n, 8, 1, file) == 1 && fwrite(header, 1, n, file) == n &&
              fwrite(data, 1, n_data, file) == n_data && fclose(file) == 0);
    free(header);
    free(data);
    path_in(path, "config.json");
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file,
            "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 32,"
            "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 48,"
            "\"vocab_size\": %d, \"tie_word_embeddings\": %s}",
            VOCAB, tied ? "true" : "false");
    cr_assert_eq(fclose(file), 0);
}

/* ---- computed logits ---- */

struct told {
    char text[8][768];
    size_t n;
};

static void remember(void *context, const char *text)
{
    struct told *told = context;
    cr_assert_lt(told->n, 8);
    snprintf(told->text[told->n++], sizeof told->text[0], "%s", text);
}

static int compute(bool tied, float logits[VOCAB], struct told *told, struct ifl_error *error)
{
    static const uint32_t table[2] = {3, 1};
    static const int32_t tokens[6] = {7, 1, 42, 3, 3, 19}, n_new = 6;
    static struct driver driver;
    struct driven seq = {tokens, 0, table};
    struct ifl_engine_options options = {
        .model = shape, .weights_dir = dir, .n_blocks = 8, .notes = {remember, told}};
    options.model.tied_embeddings = tied;
    *told = (struct told){.n = 0};
    int rc = driver_open(&driver, &ifl_engine_v1, &options);
    if (rc == 0)
        rc = driver_step(&driver, &seq, &n_new, 1, logits);
    *error = driver.error;
    driver_close(&driver);
    return rc;
}

static void expect_logits(bool tied, float logits[VOCAB], size_t n_notes)
{
    struct told told;
    struct ifl_error error;
    cr_assert_eq(compute(tied, logits, &told, &error), 0, "%s", error.text);
    cr_expect_eq(told.n, n_notes, "%zu notes, expected %zu: %s", told.n, n_notes, told.text[0]);
}

static void expect_same(const float *a, const float *b, bool same)
{
    cr_expect_eq(memcmp(a, b, VOCAB * sizeof *a) == 0, same, "%g and %g", a[0], b[0]);
}

/* ---- tied heads ---- */

/* transformers 5.0 to 5.23 leave the two apart; 4.57 ties them, and computes as without a head. */
Test(checkpoint, a_tied_head_that_differs_is_used)
{
    float untied[VOCAB], with_head[VOCAB], without[VOCAB];
    struct told told;
    struct ifl_error error;
    write_checkpoint(false, (struct writing){0});
    expect_logits(false, untied, 0);
    write_checkpoint(true, (struct writing){.without = "lm_head.weight"});
    expect_logits(true, without, 0);
    write_checkpoint(true, (struct writing){0});
    cr_assert_eq(compute(true, with_head, &told, &error), 0, "%s", error.text);
    expect_same(with_head, untied, true);
    expect_same(with_head, without, false);
    cr_assert_eq(told.n, 1);
    cr_expect(strstr(told.text[0], "lm_head.weight differs from model.embed_tokens.weight") &&
                  strstr(told.text[0], dir),
              "%s", told.text[0]);
}

Test(checkpoint, a_tied_head_that_is_the_embedding_is_tied)
{
    float with_head[VOCAB], without[VOCAB];
    write_checkpoint(true, (struct writing){.without = "lm_head.weight"});
    expect_logits(true, without, 0);
    write_checkpoint(true, (struct writing){.head_as = "embedding"});
    expect_logits(true, with_head, 0);
    expect_same(with_head, without, true);
}

Test(checkpoint, a_tied_head_stands_in_for_the_embedding)
{
    float with_head[VOCAB], without[VOCAB];
    struct told told;
    struct ifl_error error;
    write_checkpoint(true, (struct writing){.without = "lm_head.weight"});
    expect_logits(true, without, 0);
    write_checkpoint(
        true, (struct writing){.without = "model.embed_tokens.weight", .head_as = "embedding"});
    expect_logits(true, with_head, 0);
    expect_same(with_head, without, true);
    write_checkpoint(false, (struct writing){.without = "model.embed_tokens.weight"});
    cr_expect_eq(compute(false, without, &told, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "no tensor model.embed_tokens.weight"), "%s", error.text);
}

/* ---- NaN and infinities ---- */

static void expect_note(const char *name, float number, const char *words)
{
    float logits[VOCAB];
    struct told told;
    struct ifl_error error;
    write_checkpoint(false, (struct writing){.poked = name, .poke = number});
    cr_assert_eq(compute(false, logits, &told, &error), 0, "%s", error.text);
    cr_assert_eq(told.n, 1, "%s", name);
    cr_expect(strstr(told.text[0], name) && strstr(told.text[0], words), "%s", told.text[0]);
}

Test(checkpoint, numbers_that_are_none_are_noted)
{
    float logits[VOCAB];
    expect_note("model.layers.1.mlp.up_proj.weight", NAN, "of 1536 numbers 1 are NaN and 0");
    expect_note("model.norm.weight", -INFINITY, "of 32 numbers 0 are NaN and 1 infinite");
    write_checkpoint(false, (struct writing){.poked = "model.norm.weight", .poke = 3e38f});
    expect_logits(false, logits, 0);
}

/* An engine with a smaller range of numbers turns them into infinities. */
Test(checkpoint, numbers_beyond_the_engine_are_noted)
{
    static float numbers[MAX_WEIGHT];
    struct told told = {.n = 0};
    struct ifl_error error;
    struct checkpoint checkpoint;
    const struct weight weight = {WEIGHT_NORM_END, 0, 32, 0, 32, "model.norm.weight"};
    write_checkpoint(false, (struct writing){.poked = "model.norm.weight", .poke = 70000});
    cr_assert_eq(checkpoint_open(dir, &checkpoint, &error), 0, "%s", error.text);
    struct weight_source source = {
        .checkpoint = &checkpoint, .greatest = 65504, .notes = {remember, &told}};
    cr_expect_eq(weight_fill(&source, &weight, numbers, &error), 0);
    cr_assert_eq(told.n, 1);
    cr_expect_not_null(strstr(told.text[0], "1 infinite or beyond the engine's 65504"), "%s",
                       told.text[0]);
    checkpoint_close(&checkpoint);
}

/* ---- pipes ---- */

Test(checkpoint, no_pipe_is_waited_for, .timeout = 20)
{
    static const char *const names[] = {"config.json", "model.safetensors.index.json",
                                        "model.safetensors"};
    float logits[VOCAB];
    struct told told;
    struct ifl_error error;
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        remove_folder();
        make_folder();
        write_checkpoint(false, (struct writing){0});
        path_in(path, names[i]);
        unlink(path);
        cr_assert_eq(mkfifo(path, 0600), 0);
        cr_expect_eq(compute(false, logits, &told, &error), IFL_E_INPUT);
        cr_expect(strstr(error.text, "not a regular file") && strcmp(error.file, path) == 0,
                  "%s: %s", error.file, error.text);
    }
}
