/* SGLang's defaults that go by the GPU, beside what its own code says. */
#include "import/sglang_memory.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"

static const char path[] = "tests/import/data/sglang_defaults.csv";
static const char images_path[] = "tests/import/data/sglang_images.csv";

static double number(const struct table *table, size_t i, const char *column)
{
    const int at = table_column(table, column);
    double value = NAN;
    struct ifl_error error = {0};
    cr_assert_geq(at, 0, "no column %s", column);
    cr_assert_eq(table_number(table, i, (size_t)at, -10, 1e9, &value, &error), 0, "%s", error.text);
    return value;
}

static enum sglang_drafts drafts_of(const char *name)
{
    static const char *const names[] = {"none", "NGRAM", "EAGLE", "STANDALONE"};
    int i = 0;
    while (i < 3 && strcmp(names[i], name) != 0)
        i++;
    cr_assert_str_eq(names[i], name);
    return (enum sglang_drafts)i;
}

static struct sglang_server release_of(const struct table *table, size_t i)
{
    int minor = 0, patch = 0, post = 0;
    const char *version = table_cell(table, i, (size_t)table_column(table, "version"));
    cr_assert_geq(sscanf(version, "0.%d.%d.post%d", &minor, &patch, &post), 2, "%s", version);
    return (struct sglang_server){.version = 100 * minor + patch, .post = post};
}

static struct sglang_server server_of(const struct table *table, size_t i)
{
    const struct sglang_server server = {
        .version = release_of(table, i).version,
        .gpu_mib = number(table, i, "gpu_mib"),
        .tensor = (long long)number(table, i, "tensor"),
        .pipeline = (long long)number(table, i, "pipeline"),
        .groups = (long long)number(table, i, "groups"),
        .chunk_tokens = (long long)number(table, i, "chunk"),
        .max_seqs = (long long)number(table, i, "max_seqs"),
        .graph_seqs = (long long)number(table, i, "graph_seqs"),
        .drafts = drafts_of(table_cell(table, i, (size_t)table_column(table, "draft"))),
        .no_fused_prompts = number(table, i, "groups") > 1,
    };
    return server;
}

Test(sglang_memory, as_its_own_code_says)
{
    struct table table;
    struct ifl_error error = {0};
    cr_assert_eq(table_read(path, &table, &error), 0, "%s", error.text);
    cr_assert_eq(table.n_rows, 120);
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct sglang_server server = server_of(&table, i);
        cr_expect_float_eq(sglang_static_share(&server), number(&table, i, "share"), 1e-9,
                           "row %zu: %g", i, sglang_static_share(&server));
        cr_expect_eq(sglang_chunk_tokens(&server), (long long)number(&table, i, "chunk_tokens"),
                     "row %zu", i);
    }
    table_free(&table);
}

Test(sglang_memory, images_as_its_own_code_says)
{
    struct table table;
    struct ifl_error error = {0};
    cr_assert_eq(table_read(images_path, &table, &error), 0, "%s", error.text);
    cr_assert_eq(table.n_rows, 37);
    for (size_t i = 0; i < table.n_rows; i++) {
        struct sglang_server server = release_of(&table, i);
        server.images = (struct sglang_images){.is_there = true,
                                               .has_config = true,
                                               .layers = (long long)number(&table, i, "layers"),
                                               .width = (long long)number(&table, i, "width")};
        cr_expect_float_eq(sglang_image_frac(&server, false), number(&table, i, "frac"), 1e-9,
                           "row %zu: %g", i, sglang_image_frac(&server, false));
        cr_expect_eq(sglang_image_frac(&server, true), 1, "row %zu", i);
    }
    table_free(&table);
}

/* ---- by hand ---- */

static const struct sglang_server h100 = {
    .version = 509, .gpu_mib = 81559, .tensor = 1, .pipeline = 1, .groups = 1};

/* 512 + 1.5 x 8192 + 2 x 256 + 128 = 13440 of 81559 MiB. */
Test(sglang_memory, one_h100)
{
    struct sglang_server server = h100;
    cr_expect_float_eq(sglang_static_share(&server), 0.835, 1e-9);
    server.version = 512; /* and 58 graphs of prompts of 8 MiB: 0.8295 */
    cr_expect_float_eq(sglang_static_share(&server), 0.830, 1e-9);
    server.no_prompt_graphs = true;
    cr_expect_float_eq(sglang_static_share(&server), 0.835, 1e-9);
    server = h100;
    server.is_llama_2 = true; /* 50 graphs, from 0.5.10 on */
    cr_expect_float_eq(sglang_static_share(&server), 0.835, 1e-9);
}

/* With latent K/V the largest graph of prompts has 2048 tokens, whatever the chunk: 8 of up to 32
 * in steps of 4, 14, 8, 8 and 4 more, 42 of 8 MiB, of 13440 + 336. */
Test(sglang_memory, graphs_of_latent_attention)
{
    struct sglang_server server = h100;
    server.version = 512;
    server.is_latent = true;
    cr_expect_float_eq(sglang_static_share(&server), 0.831, 1e-9);
    server.chunk_tokens = 4096; /* 512 + 6144 + 512 + 128 + 336, at least 10 GiB */
    cr_expect_float_eq(sglang_static_share(&server), 0.874, 1e-9);
}

/* Prompts that run whole count with --max-prefill-tokens: 512 + 1.5 x 16384 + 512 + 128. */
Test(sglang_memory, whole_prompts)
{
    struct sglang_server server = h100;
    server.chunk_tokens = -1;
    server.max_prefill_tokens = 16384;
    cr_expect_eq(sglang_chunk_tokens(&server), -1);
    cr_expect_float_eq(sglang_static_share(&server), 0.685, 5e-4);
}

/* From 0.5.16 on a server for prompts has no graphs of decodes, 512 + 12288 + 128 + 464, and one
 * for answers counts its seats, at least 10 GiB; one without graphs has neither. */
Test(sglang_memory, roles)
{
    struct sglang_server server = h100;
    server.version = 516;
    server.role = SGLANG_PREFILL;
    cr_expect_float_eq(sglang_static_share(&server), round(1000 * (1 - 13392.0 / 81559)) / 1000,
                       1e-9);
    server.role = SGLANG_DECODE;
    cr_expect_float_eq(sglang_static_share(&server), round(1000 * (1 - 10240.0 / 81559)) / 1000,
                       1e-9);
    server.role = SGLANG_BOTH;
    server.no_graphs = true;
    cr_expect_float_eq(sglang_static_share(&server), round(1000 * (1 - 12928.0 / 81559)) / 1000,
                       1e-9);
}

static double frac(int version, int post, bool is_given, struct sglang_images images)
{
    const struct sglang_server server = {.version = version, .post = post, .images = images};
    return sglang_image_frac(&server, is_given);
}

/* model_runner.py to 0.4.8, then server_args.py: the factor and what it is of. */
Test(sglang_memory, images_by_release)
{
    const struct sglang_images some = {.is_there = true, .has_config = true};
    const struct sglang_images none = {.has_config = true};
    cr_expect_float_eq(frac(400, 0, false, some), 0.95, 1e-12);
    cr_expect_float_eq(frac(404, 3, true, some), 0.95, 1e-12);
    cr_expect_float_eq(frac(404, 4, true, some), 0.9, 1e-12);
    cr_expect_float_eq(frac(408, 1, true, some), 0.9, 1e-12);
    cr_expect_float_eq(frac(409, 2, false, some), 0.9, 1e-12);
    cr_expect_float_eq(frac(409, 2, true, some), 1, 1e-12);
    cr_expect_float_eq(frac(409, 3, false, some), 0.95, 1e-12); /* a ViT-L */
    cr_expect_float_eq(frac(404, 0, false, none), 1, 1e-12);
}

/* Families that are served without images by default, and servers without the encoder. */
Test(sglang_memory, images_that_are_off)
{
    struct sglang_images images = {.is_there = true, .is_optional = true, .has_config = true};
    cr_expect_float_eq(frac(405, 0, false, images), 0.9, 1e-12);
    cr_expect_float_eq(frac(406, 0, false, images), 1, 1e-12);
    images.is_asked = true;
    cr_expect_float_eq(frac(406, 0, false, images), 0.9, 1e-12);
    images.is_left_out = true;
    cr_expect_float_eq(frac(508, 0, false, images), 0.95, 1e-12);
    cr_expect_float_eq(frac(509, 0, false, images), 1, 1e-12);
    images = (struct sglang_images){.is_there = true, .has_config = false};
    cr_expect_float_eq(frac(505, 0, false, images), 1, 1e-12);
    struct sglang_server decodes = {.version = 516, .role = SGLANG_DECODE, .images = images};
    decodes.images.has_config = true;
    cr_expect_float_eq(sglang_image_frac(&decodes, false), 0.95, 1e-12);
    decodes.version = 517;
    cr_expect_float_eq(sglang_image_frac(&decodes, false), 1, 1e-12);
}

/* No graphs of prompts beside images: 0.835 as in 0.5.9. */
Test(sglang_memory, graphs_beside_images)
{
    struct sglang_server server = h100;
    server.version = 512;
    server.images.is_there = true;
    cr_expect_float_eq(sglang_static_share(&server), 0.835, 1e-9);
    server.version = 516;
    server.images.keeps_prompt_graphs = true;
    cr_expect_float_eq(sglang_static_share(&server), 0.830, 1e-9);
}
