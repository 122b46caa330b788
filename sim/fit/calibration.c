/* Sheets of inflight calibrate; their columns are explained in fit/calibrate/calibrate.h. */
#include "fit/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In the order of CALIBRATION_COLUMNS. */
enum column {
    OP,
    LAYERS,
    D_MODEL,
    Q_HEADS,
    KV_HEADS,
    D_HEAD,
    D_FFN,
    VOCAB,
    ELEMENT_BYTES,
    M,
    N,
    K,
    PREFILL_SEQS,
    PREFILL_TOKENS,
    PREFILL_Q_KV,
    PREFILL_Q_Q,
    MAX_PREFILL_KV,
    DECODE_SEQS,
    DECODE_CONTEXT,
    SAMPLED,
    BLOCKS,
    BLOCK_BYTES,
    MEDIAN_S,
    MIN_S,
};

/* ---- what the operations share ---- */

static void read_model(const struct adapter_row *row, struct fit_sample *sample, int *code,
                       struct ifl_error *error)
{
    sample->n_layers = adapter_number(row, LAYERS, 1, code, error);
    sample->d_model = adapter_number(row, D_MODEL, 1, code, error);
    sample->q_heads = adapter_number(row, Q_HEADS, 1, code, error);
    sample->kv_heads = adapter_number(row, KV_HEADS, 1, code, error);
    sample->d_head = adapter_number(row, D_HEAD, 1, code, error);
    sample->d_ffn = adapter_number(row, D_FFN, 1, code, error);
    sample->n_vocab = adapter_number(row, VOCAB, 1, code, error);
    sample->element_bytes = adapter_number(row, ELEMENT_BYTES, 1, code, error);
}

static void read_totals(const struct adapter_row *row, struct fit_sample *sample, int *code,
                        struct ifl_error *error)
{
    struct ifl_step_totals *totals = &sample->totals;
    totals->n_prefill_seqs = (int32_t)adapter_number(row, PREFILL_SEQS, 0, code, error);
    totals->n_prefill_tokens = (int32_t)adapter_number(row, PREFILL_TOKENS, 0, code, error);
    totals->prefill_q_kv = (int64_t)adapter_number(row, PREFILL_Q_KV, 0, code, error);
    totals->prefill_q_q = (int64_t)adapter_number(row, PREFILL_Q_Q, 0, code, error);
    totals->max_prefill_kv = (int32_t)adapter_number(row, MAX_PREFILL_KV, 0, code, error);
    totals->n_decode_seqs = (int32_t)adapter_number(row, DECODE_SEQS, 0, code, error);
    totals->decode_context = (int64_t)adapter_number(row, DECODE_CONTEXT, 0, code, error);
    totals->n_sampled = (int32_t)adapter_number(row, SAMPLED, 0, code, error);
    totals->n_tokens = totals->n_prefill_tokens + totals->n_decode_seqs;
    snprintf(sample->group, sizeof sample->group, "%d+%d of %lld", totals->n_prefill_tokens,
             totals->n_decode_seqs, (long long)totals->decode_context);
}

/* ---- an operation each ---- */

static void read_product(const struct adapter_row *row, struct fit_sample *sample, int *code,
                         struct ifl_error *error)
{
    sample->m = adapter_number(row, M, 1, code, error);
    sample->n = adapter_number(row, N, 1, code, error);
    sample->k = adapter_number(row, K, 1, code, error);
    snprintf(sample->group, sizeof sample->group, "%.0f/%.0f", sample->n, sample->k);
}

static void set_decodes(const struct fit_sample *sample, double *n_seqs, double *context_tokens)
{
    const struct ifl_step_totals *totals = &sample->totals;
    *n_seqs = totals->n_decode_seqs;
    *context_tokens = (double)totals->decode_context / totals->n_decode_seqs - 1;
}

static void read_decode(const struct adapter_row *row, struct fit_sample *sample, int *code,
                        struct ifl_error *error)
{
    read_totals(row, sample, code, error);
    sample->new_tokens = 1;
    if (sample->totals.n_decode_seqs > 0)
        set_decodes(sample, &sample->n_seqs, &sample->context_tokens);
    else
        sample->op = FIT_NONE;
}

/* Sequences of equally many new tokens; their contexts may differ. */
static void read_prefill(const struct adapter_row *row, struct fit_sample *sample, int *code,
                         struct ifl_error *error)
{
    const struct ifl_step_totals *totals = &sample->totals;
    read_totals(row, sample, code, error);
    if (totals->n_prefill_tokens == 0 || totals->n_prefill_seqs == 0) {
        sample->op = FIT_NONE;
        return;
    }
    sample->n_seqs = totals->n_prefill_seqs;
    sample->new_tokens = totals->n_prefill_tokens / sample->n_seqs;
    sample->context_tokens = (double)totals->prefill_q_kv / totals->n_prefill_tokens;
    sample->longest_kv = totals->max_prefill_kv;
}

static void read_mixed(const struct adapter_row *row, struct fit_sample *sample, int *code,
                       struct ifl_error *error)
{
    read_prefill(row, sample, code, error);
    if (sample->totals.n_decode_seqs > 0)
        set_decodes(sample, &sample->n_decode_seqs, &sample->decode_context_tokens);
    else
        sample->op = FIT_NONE;
}

/* Counts the bytes of the cost model's four kernels of a layer (cost/roofline.c), not the bytes
 * that an engine moves. */
static void read_elementwise(const struct adapter_row *row, struct fit_sample *sample, int *code,
                             struct ifl_error *error)
{
    const double norm = 4 * sample->d_model, activation = 3 * sample->d_ffn;
    const double rotary = 2 * (sample->q_heads + sample->kv_heads) * sample->d_head;
    read_totals(row, sample, code, error);
    sample->n_launches = 4;
    sample->bytes =
        sample->totals.n_tokens * (2 * norm + rotary + activation) * sample->element_bytes;
}

static void read_blocks(const struct adapter_row *row, struct fit_sample *sample, int *code,
                        struct ifl_error *error)
{
    sample->n_seqs = adapter_number(row, BLOCKS, 1, code, error);
    sample->bytes = adapter_number(row, BLOCK_BYTES, 1, code, error);
    snprintf(sample->group, sizeof sample->group, "%.0f blocks", sample->n_seqs);
}

static const struct operation {
    const char *name;
    enum fit_op op;
    void (*read)(const struct adapter_row *row, struct fit_sample *sample, int *code,
                 struct ifl_error *error);
} operations[] = {
    {"gemm", FIT_GEMM, read_product},
    {"attention_prefill", FIT_PREFILL, read_prefill},
    {"attention_decode", FIT_DECODE, read_decode},
    {"attention_mixed", FIT_DECODE_MIXED, read_mixed},
    {"elementwise", FIT_ELEMENTWISE, read_elementwise},
    {"swap_out", FIT_SWAP_OUT, read_blocks},
    {"swap_in", FIT_SWAP_IN, read_blocks},
    {"block_copy", FIT_BLOCK_COPY, read_blocks},
    {"step", FIT_HOST, read_totals},
};
enum { N_OPERATIONS = sizeof operations / sizeof *operations };

int calibration_sample(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error)
{
    const char *name = adapter_text(row, OP);
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_NONE};
    for (size_t i = 0; i < N_OPERATIONS; i++) {
        if (strcmp(operations[i].name, name) != 0)
            continue;
        sample->op = operations[i].op;
        sample->measured_s = adapter_number(row, MEDIAN_S, 1e-12, &code, error);
        read_model(row, sample, &code, error);
        operations[i].read(row, sample, &code, error);
    }
    return code;
}

/* ---- the profile that a sheet begins ---- */

static bool is_sheet(const struct fit_data *data, size_t table)
{
    return data->adapters[table]->sample == calibration_sample;
}

static const struct table *first_sheet(const struct fit_data *data, struct ifl_error *error)
{
    for (size_t i = 0; i < data->n_tables; i++)
        if (is_sheet(data, i))
            return &data->tables[i];
    ifl_fail(error, IFL_E_INPUT,
             "no file is a sheet of inflight calibrate, so --like is missing: it gives the peaks");
    return NULL;
}

/* The largest work / time over the rows of the named ceiling. */
static double ceiling(const struct table *table, const char *name, const char *work)
{
    const int of = table_column(table, work), in = table_column(table, "min_s");
    const int op = table_column(table, "op");
    double most = 0;
    for (size_t row = 0; row < table->n_rows; row++)
        if (strcmp(table_cell(table, row, (size_t)op), name) == 0) {
            const double rate = strtod(table_cell(table, row, (size_t)of), NULL) /
                                strtod(table_cell(table, row, (size_t)in), NULL);
            most = fmax(most, rate);
        }
    return most;
}

/* Rounds to five digits, since measurements have no more. */
static double rounded(double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.5g", value);
    return strtod(digits, NULL);
}

/* Sets the peaks to the ceilings that the sheet measured, and the kernels to those of inflight's
 * engines:
 *   - one kernel for decodes with and without prefill beside them (decode_mixed 0);
 *   - no kernel that leaves contexts whole (stream_gb_per_s 0);
 *   - possibly one for products of a single row. */
static int set_peaks(const struct table *table, struct platform *platform, struct ifl_error *error)
{
    char units[256], memory_gib[256];
    *platform = (struct platform){
        .hardware.gpu = {.peak_tflops = rounded(ceiling(table, "ceiling_gemm", "flops") * 1e-12),
                         .memory_gb_per_s = rounded(ceiling(table, "ceiling_copy", "bytes") * 1e-9),
                         .n_sms = atoi(table_remark(table, "units", units)),
                         .memory_gib = strtod(table_remark(table, "memory_gib", memory_gib), NULL)},
        .hardware.gemm = {.vector_frac = 1},
        .deployment.memory = {.activation_tokens = 4096},
    };
    const struct gpu_profile *gpu = &platform->hardware.gpu;
    if (gpu->peak_tflops > 0 && gpu->memory_gb_per_s > 0 && gpu->n_sms > 0 && gpu->memory_gib > 0)
        return deployment_fill_optional(&platform->deployment, error);
    return ifl_fail_at(error, table->path, 1, 0,
                       "the sheet lacks ceiling_copy, ceiling_gemm or the remarks \"# units: N\" "
                       "and \"# memory_gib: N\", expected them all, or --like");
}

int calibration_begin(const struct fit_data *data, struct platform *platform,
                      struct ifl_error *error)
{
    char processor[256], software[256], engine[256], model[256], threads[256];
    const struct table *table = first_sheet(data, error);
    if (!table || set_peaks(table, platform, error))
        return error->code;
    struct hardware *hardware = &platform->hardware;
    snprintf(hardware->about, sizeof hardware->about, "%.100s; %.110s; engine %.8s",
             table_remark(table, "processor", processor), table_remark(table, "software", software),
             table_remark(table, "engine", engine));
    snprintf(hardware->source, sizeof hardware->source,
             "measured by inflight calibrate on %.64s, threads: %.8s; peaks: its ceilings",
             table_remark(table, "model", model), table_remark(table, "threads", threads));
    return 0;
}

/* ---- a profile without a --like has to be whole ---- */

int calibration_check_whole(const struct fit_report *report, struct ifl_error *error)
{
    for (size_t i = 0; i < N_OPERATIONS; i++)
        if (!report->of[operations[i].op].form)
            return ifl_fail(error, IFL_E_INPUT,
                            "no row of %s, expected some, or --like for what is not measured",
                            operations[i].name);
    return 0;
}
