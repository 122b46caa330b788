/* SGLang's defaults that go by the GPU, beside what its own code says. */
#include "import/sglang_memory.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"

static const char path[] = "tests/import/data/sglang_defaults.csv";

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

static struct sglang_server server_of(const struct table *table, size_t i)
{
    int minor = 0, patch = 0;
    const char *version = table_cell(table, i, (size_t)table_column(table, "version"));
    cr_assert_eq(sscanf(version, "0.%d.%d", &minor, &patch), 2, "%s", version);
    const struct sglang_server server = {
        .version = 100 * minor + patch,
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
