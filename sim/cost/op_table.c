/* Lookup tables of a decoder layer's operations, by the rules of Vidur (Agrawal et al., MLSys 2024,
 * section 4.3; vidur/execution_time_predictor):
 *
 *     step = L [ sum of the linear operations at ceil8(tokens) + K/V save at tokens
 *              + decode(sequences, ceil64(floor(mean K/V)))
 *              + prefill(sum of ceil64(K/V), round(sqrt(sum of chunk^2))) ]
 *
 * with L layers. K/V is the number of tokens before the step; for a decode it includes the step's
 * own token. Where query heads share KV heads, an attention term over more than one sequence costs
 * 10% more. The tables are for one GPU: they have no all-reduce and no copy to the host. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "cost/kind.h"

enum { LINEAR, DECODE, PREFILL, N_TABLES };
enum { KV_STEP = 64, TOKEN_STEP = 8, MAX_INDEX = 1 << 20, MAX_CELLS = 1 << 26 };

static const double batching_factor = 1.1; /* attention_*_batching_overhead_fraction */
static const char *const kv_save = "attn_kv_cache_save_exact_tokens";

/* The index columns of each table, in units of `step`; the second varies fastest in the grid. */
static const struct form {
    const char *ending;
    const char *index[2];
    double step[2];
} forms[N_TABLES] = {
    [LINEAR] = {"linear_ms_per_layer.csv", {NULL, "num_tokens"}, {1, 1}},
    [DECODE] = {"attn_decode_ms_per_layer.csv", {"batch_size", "kv_rounded64"}, {1, KV_STEP}},
    [PREFILL] = {"attn_prefill_ms_per_layer.csv", {"kv_rounded64", "chunk"}, {KV_STEP, 1}},
};

/* ms[outer][inner], NAN where the table has no row. */
struct grid {
    size_t n_outer, n_inner;
    double *ms;
};

struct op_table {
    struct cost base;
    int32_t layers;
    bool shares_kv;              /* GQA or MQA */
    struct grid grids[N_TABLES]; /* LINEAR: without the K/V save */
    struct grid save;
    char paths[N_TABLES][512];
    double cells[];
};

/* ---- the time of a step ---- */

static double grid_ms(const struct grid *grid, int64_t outer, int64_t inner)
{
    if (outer < 0 || inner < 0 || (size_t)outer >= grid->n_outer || (size_t)inner >= grid->n_inner)
        return NAN;
    return grid->ms[(size_t)outer * grid->n_inner + (size_t)inner];
}

static int64_t ceil_div(int64_t n, int64_t d)
{
    return (n + d - 1) / d;
}

static int64_t padded_tokens(const struct ifl_step_totals *totals)
{
    return ceil_div(totals->n_tokens, TOKEN_STEP) * TOKEN_STEP;
}

static int64_t mean_kv(const struct ifl_step_totals *totals)
{
    return ceil_div(totals->decode_context / totals->n_decode_seqs, KV_STEP);
}

static int64_t chunk(const struct ifl_step_totals *totals)
{
    return llrint(sqrt((double)totals->prefill_q_q));
}

static double linear_ms(const struct op_table *table, const struct ifl_step_totals *totals)
{
    return grid_ms(&table->grids[LINEAR], 0, padded_tokens(totals)) +
           grid_ms(&table->save, 0, totals->n_tokens);
}

static double shared(const struct op_table *table, int32_t n_seqs, double ms)
{
    return table->shares_kv && n_seqs > 1 ? batching_factor * ms : ms;
}

static double decode_ms(const struct op_table *table, const struct ifl_step_totals *totals)
{
    const int32_t n_seqs = totals->n_decode_seqs;
    if (n_seqs == 0)
        return 0;
    return shared(table, n_seqs, grid_ms(&table->grids[DECODE], n_seqs, mean_kv(totals)));
}

static double prefill_ms(const struct op_table *table, const struct ifl_step_totals *totals)
{
    const int32_t n_seqs = totals->n_prefill_seqs;
    if (n_seqs == 0)
        return 0;
    return shared(table, n_seqs,
                  grid_ms(&table->grids[PREFILL], totals->prefill_kv_64 / KV_STEP, chunk(totals)));
}

static double table_step_s(struct cost *cost, const struct ifl_step_totals *totals)
{
    const struct op_table *table = (const struct op_table *)cost;
    if (totals->n_blocks_out + totals->n_blocks_in > 0)
        return NAN;
    if (totals->n_tokens == 0)
        return 0;
    return table->layers * 1e-3 *
           (linear_ms(table, totals) + decode_ms(table, totals) + prefill_ms(table, totals));
}

/* ---- why a step has no time ---- */

/* K/V is saved without padding: of a step that is padded, two rows are read. */
static int fail_linear(const struct op_table *table, const struct ifl_step_totals *totals,
                       struct ifl_error *error)
{
    const long long padded = padded_tokens(totals);
    char or_unpadded[32] = "";
    if (padded != totals->n_tokens)
        snprintf(or_unpadded, sizeof or_unpadded, ", or for %d", totals->n_tokens);
    return ifl_fail_at(error, table->paths[LINEAR], 0, 0,
                       "no row for num_tokens %lld%s, expected one for each step of the run",
                       padded, or_unpadded);
}

static int table_why_not(const struct cost *cost, const struct ifl_step_totals *totals,
                         struct ifl_error *error)
{
    const struct op_table *table = (const struct op_table *)cost;
    if (totals->n_blocks_out + totals->n_blocks_in > 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "cost.model is table, which has no time for blocks that are swapped, "
                        "expected serving.preempt.fate recompute or never");
    if (isnan(linear_ms(table, totals)))
        return fail_linear(table, totals, error);
    if (isnan(decode_ms(table, totals)))
        return ifl_fail_at(error, table->paths[DECODE], 0, 0,
                           "no row for batch_size %d and kv_rounded64 %lld, expected one for each "
                           "step of the run",
                           totals->n_decode_seqs, (long long)mean_kv(totals) * KV_STEP);
    return ifl_fail_at(error, table->paths[PREFILL], 0, 0,
                       "no row for kv_rounded64 %lld and chunk %lld, expected one for each step of "
                       "the run",
                       (long long)totals->prefill_kv_64, (long long)chunk(totals));
}

/* ---- reading ---- */

/* The one file in `dir` with that ending, gzipped or plain. */
static int find_file(const char *dir, const char *ending, char path[512], struct ifl_error *error)
{
    static const char *const suffixes[] = {"", ".gz"};
    char pattern[640];
    glob_t found = {0};
    for (int i = 0; i < 2; i++) {
        snprintf(pattern, sizeof pattern, "%s/*%s%s", dir, ending, suffixes[i]);
        if (glob(pattern, i ? GLOB_APPEND : 0, NULL, &found) == GLOB_NOSPACE) {
            globfree(&found);
            return ifl_fail_nomem(error);
        }
    }
    const size_t n = found.gl_pathc;
    if (n == 1)
        snprintf(path, 512, "%s", found.gl_pathv[0]);
    globfree(&found);
    if (n == 1)
        return 0;
    return ifl_fail_at(error, dir, 0, 0,
                       "%zu files that end in %s or %s.gz, expected one for cost.model table", n,
                       ending, ending);
}

static int need_column(const struct table *table, const char *name, struct ifl_error *error)
{
    const int column = table_column(table, name);
    if (column >= 0)
        return column;
    return ifl_fail_at(error, table->path, 1, 0, "no column %s, expected one", name);
}

static int read_index(const struct table *table, size_t row, const char *name, double step,
                      size_t *index, struct ifl_error *error)
{
    double value;
    *index = 0;
    if (!name)
        return 0;
    const int column = need_column(table, name, error);
    if (column < 0)
        return column;
    const int rc = table_number(table, row, (size_t)column, 0, MAX_INDEX * step, &value, error);
    if (rc < 0)
        return rc;
    if (fmod(value, step) != 0) {
        char expected[64];
        snprintf(expected, sizeof expected, "a multiple of %g", step);
        return table_fail(table, row, (size_t)column, expected, error);
    }
    *index = (size_t)(value / step);
    return 0;
}

static int locate(const struct table *table, const struct form *form, size_t row, size_t at[2],
                  struct ifl_error *error)
{
    for (int i = 0; i < 2; i++)
        if (read_index(table, row, form->index[i], form->step[i], &at[i], error) < 0)
            return error->code;
    return 0;
}

static int measure(const struct table *table, const struct form *form, struct grid *grid,
                   struct ifl_error *error)
{
    size_t at[2] = {0, 0};
    *grid = (struct grid){0};
    for (size_t row = 0; row < table->n_rows; row++) {
        if (locate(table, form, row, at, error) < 0)
            return error->code;
        if (at[0] >= grid->n_outer)
            grid->n_outer = at[0] + 1;
        if (at[1] >= grid->n_inner)
            grid->n_inner = at[1] + 1;
    }
    if (grid->n_outer * grid->n_inner <= MAX_CELLS)
        return 0;
    return ifl_fail_at(error, table->path, 0, 0, "a table of %zu x %zu, expected at most %d cells",
                       grid->n_outer, grid->n_inner, MAX_CELLS);
}

/* The cells hold a sum of columns: the first column sets a cell, further ones add to it. */
enum summand { FIRST_SUMMAND, FURTHER_SUMMAND };

/* Adds a column to the cells that its rows name; a cell is NAN until its first row. */
static int add_column(const struct table *table, const struct form *form, const char *name,
                      enum summand summand, struct grid *grid, struct ifl_error *error)
{
    const bool first = summand == FIRST_SUMMAND;
    const int column = need_column(table, name, error);
    double ms;
    size_t at[2] = {0, 0};
    if (column < 0)
        return column;
    for (size_t row = 0; row < table->n_rows; row++) {
        if (locate(table, form, row, at, error) < 0 ||
            table_number(table, row, (size_t)column, 0, 1e9, &ms, error) < 0)
            return error->code;
        double *cell = &grid->ms[at[0] * grid->n_inner + at[1]];
        if (first && !isnan(*cell))
            return ifl_fail_at(error, table->path, table->lines[row], 0,
                               "a second row for the same step, expected one");
        *cell = first ? ms : *cell + ms;
    }
    return 0;
}

static int add_linears(const struct table *table, struct op_table *ops, struct ifl_error *error)
{
    static const char *const names[] = {
        "attn_pre_proj", "attn_post_proj", "mlp_up_proj",     "mlp_down_proj",
        "mlp_act",       "attn_rope",      "input_layernorm", "post_attention_layernorm",
        "add",
    };
    int rc = add_column(table, &forms[LINEAR], kv_save, FIRST_SUMMAND, &ops->save, error);
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++)
        rc = add_column(table, &forms[LINEAR], names[i], i == 0 ? FIRST_SUMMAND : FURTHER_SUMMAND,
                        &ops->grids[LINEAR], error);
    return rc;
}

static double *lay_out(struct grid *grid, double *cells)
{
    const size_t n = grid->n_outer * grid->n_inner;
    grid->ms = cells;
    for (size_t i = 0; i < n; i++)
        cells[i] = NAN;
    return cells + n;
}

static struct op_table *create(const struct table tables[N_TABLES], struct ifl_error *error)
{
    struct grid grids[N_TABLES];
    size_t n_cells = 0;
    for (int i = 0; i < N_TABLES; i++) {
        if (measure(&tables[i], &forms[i], &grids[i], error) < 0)
            return NULL;
        n_cells += grids[i].n_outer * grids[i].n_inner * (i == LINEAR ? 2 : 1);
    }
    struct op_table *ops = calloc(1, sizeof *ops + n_cells * sizeof *ops->cells);
    if (!ops) {
        ifl_fail_nomem(error);
        return NULL;
    }
    double *cells = ops->cells;
    for (int i = 0; i < N_TABLES; i++) {
        ops->grids[i] = grids[i];
        cells = lay_out(&ops->grids[i], cells);
    }
    ops->save = grids[LINEAR];
    lay_out(&ops->save, cells);
    return ops;
}

static int fill(const struct table tables[N_TABLES], struct op_table *ops, struct ifl_error *error)
{
    int rc = add_linears(&tables[LINEAR], ops, error);
    for (int i = DECODE; i < N_TABLES && rc == 0; i++)
        rc = add_column(&tables[i], &forms[i], "ms", FIRST_SUMMAND, &ops->grids[i], error);
    for (int i = 0; i < N_TABLES && rc == 0; i++)
        snprintf(ops->paths[i], sizeof ops->paths[i], "%s", tables[i].path);
    return rc;
}

static int read_tables(const char *dir, struct table tables[N_TABLES], struct ifl_error *error)
{
    char path[512];
    for (int i = 0; i < N_TABLES; i++)
        if (find_file(dir, forms[i].ending, path, error) < 0 ||
            table_read(path, &tables[i], error) < 0)
            return error->code;
    return 0;
}

struct cost *cost_create_table(const struct model *model, const char *dir, struct ifl_error *error)
{
    struct table tables[N_TABLES] = {{0}};
    struct op_table *ops = NULL;
    if (read_tables(dir, tables, error) == 0)
        ops = create(tables, error);
    if (ops && fill(tables, ops, error) < 0) {
        free(ops);
        ops = NULL;
    }
    for (int i = 0; i < N_TABLES; i++)
        table_free(&tables[i]);
    if (!ops)
        return NULL;
    ops->base = (struct cost){table_step_s, table_why_not};
    ops->layers = model->layers;
    ops->shares_kv = model->n_kv_heads < model->n_q_heads;
    return &ops->base;
}
