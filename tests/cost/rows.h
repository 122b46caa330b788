/* Rows of a table of start-up logs, for the tests of rules that count memory. */
#ifndef TESTS_COST_ROWS_H
#define TESTS_COST_ROWS_H

#include <math.h>
#include <string.h>

#include "base/table.h"
#include "cost/memory_engine.h"
#include "loading.h"

struct row {
    const struct table *table;
    size_t i;
};

static inline double number(const struct row *row, const char *column)
{
    const int at = table_column(row->table, column);
    double value = NAN;
    struct ifl_error error = {0};
    cr_assert_geq(at, 0, "no column %s", column);
    cr_assert_eq(table_number(row->table, row->i, (size_t)at, 0, 1e9, &value, &error), 0, "%s",
                 error.text);
    return value;
}

static inline const char *word(const struct row *row, const char *column)
{
    return table_cell(row->table, row->i, (size_t)table_column(row->table, column));
}

/* False where the table has no such column. */
static inline bool flag(const struct row *row, const char *column)
{
    return table_column(row->table, column) >= 0 && number(row, column) > 0;
}

static inline int32_t quantization_of(const struct row *row)
{
    const bool is_said = table_column(row->table, "quantization") >= 0;
    const char *name = is_said ? word(row, "quantization") : "";
    if (strcmp(name, "fp8") == 0)
        return MODEL_FP8;
    if (strcmp(name, "int8") == 0)
        return MODEL_INT8;
    return strcmp(name, "int4") == 0 ? MODEL_INT4 : MODEL_PLAIN;
}

static inline struct model model_of(const struct row *row)
{
    return (struct model){
        .layers = (int32_t)number(row, "layers"),
        .d_model = (int32_t)number(row, "d_model"),
        .n_q_heads = (int32_t)number(row, "q_heads"),
        .n_kv_heads = (int32_t)number(row, "kv_heads"),
        .d_head = (int32_t)number(row, "d_head"),
        .d_ffn = (int32_t)number(row, "d_ffn"),
        .vocab = (int32_t)number(row, "vocab"),
        .tied_embeddings = number(row, "tied") > 0,
        .mlp = flag(row, "plain") ? MODEL_MLP_PLAIN : MODEL_MLP_GATED,
        .n_experts = (int32_t)number(row, "experts"),
        .experts_per_token = (int32_t)number(row, "experts_per_token"),
        .quantization = quantization_of(row),
        .weight_bytes = 2,
        .kv_bytes = 2,
    };
}

static inline enum memory_rule rule_of(const struct row *row)
{
    const char *const names[] = {"vllm-0.1",   "vllm-0.2.5", "vllm-0.2.6", "vllm-0.3.1",
                                 "vllm-0.6.4", "vllm-0.6.5", "vllm-0.7",   "vllm-0.8",
                                 "vllm-0.9.1", "vllm-0.12",  "vllm-0.14",  "vllm-0.17",
                                 "vllm-0.20",  "sglang"};
    int i = 0;
    while (i < MEMORY_SGLANG && strcmp(names[i], word(row, "rule")) != 0)
        i++;
    cr_assert_str_eq(names[i], word(row, "rule"));
    return (enum memory_rule)i;
}

/* A GPU with ranks that are linked as those of the log; the caller sets its memory. */
static inline struct platform platform_of(const struct row *row)
{
    return load_platform(strcmp(word(row, "link"), "nvlink") == 0 ? "h100-sxm" : "rtx-4090");
}

static inline struct memory_options options_of(const struct row *row)
{
    return (struct memory_options){(int32_t)number(row, "tensor"), 16, number(row, "utilization")};
}

/* The table is freed by the caller. */
static inline struct table read_logs(const char *path)
{
    struct table table;
    struct ifl_error error = {0};
    cr_assert_eq(table_read(path, &table, &error), 0, "%s", error.text);
    return table;
}

#endif
