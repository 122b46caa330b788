/* Step logs of ai-dynamo/aiconfigurator (fpm_golden_runs): vLLM serving Qwen3-32B, one row for each
 * forward pass with the totals of its batch; latency in ms. */
#include <stdlib.h>
#include <string.h>

#include "fit/adapters.h"

/* config.json of Qwen/Qwen3-32B */
static const struct model qwen3_32b = {
    .name = "qwen3-32b",
    .layers = 64,
    .d_model = 5120,
    .n_q_heads = 64,
    .n_kv_heads = 8,
    .d_head = 128,
    .d_ffn = 25600,
    .vocab = 151936,
    .qk_norm = true,
    .weight_bytes = 2,
    .kv_bytes = 2,
};

/* One row in thirty holds a prompt. With this weight the rows with prompts count together for about
 * as much as the other rows. */
enum { WEIGHT_OF_PROMPTS = 25 };

/* Sums over the prefill sequences, from the log's totals and its variance of the lengths. */
static void set_prefill(struct ifl_step_totals *totals, double q, double n, double kv, double var)
{
    const double mean = q / n;
    totals->n_prefill_tokens = (int32_t)q;
    totals->n_prefill_seqs = (int32_t)n;
    totals->prefill_q_q = (int64_t)(n * (var + mean * mean));
    totals->prefill_q_kv = (int64_t)(mean * kv);
    totals->max_prefill_kv = (int32_t)(mean + kv / n);
}

static int read_ranks(const struct adapter_row *row, struct fit_sample *sample,
                      struct ifl_error *error)
{
    const char *name = strrchr(row->table->path, '/');
    const char *at = strstr(name ? name : row->table->path, "_tp");
    const int t = at ? atoi(at + strlen("_tp")) : 0;
    sample->tensor_parallel = t;
    snprintf(sample->group, sizeof sample->group, "tp%d", t);
    if (t == 1 || t == 2 || t == 4 || t == 8)
        return 0;
    return ifl_fail_at(
        error, row->table->path, 0, 0,
        "the file's name has no _tp with 1, 2, 4 or 8 behind it, expected the number "
        "of ranks there");
}

int aic_steps(const struct adapter_row *row, struct fit_sample *sample, struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_STEP, .model = &qwen3_32b, .weight = 1};
    const double q = adapter_number(row, 0, 0, &code, error);
    const double n = adapter_number(row, 1, 0, &code, error);
    const double kv = adapter_number(row, 2, 0, &code, error);
    const double var = adapter_number(row, 3, 0, &code, error);
    const double n_decode = adapter_number(row, 4, 0, &code, error);
    const double context = adapter_number(row, 5, 0, &code, error);
    sample->measured_s = adapter_number(row, 6, 1e-9, &code, error) * 1e-3;
    if (code || read_ranks(row, sample, error))
        return error->code;
    struct ifl_step_totals *totals = &sample->totals;
    if (q > 0 && n > 0) {
        set_prefill(totals, q, n, kv, var);
        sample->weight = WEIGHT_OF_PROMPTS;
    }
    totals->n_decode_seqs = (int32_t)n_decode;
    totals->decode_context = (int64_t)(context + n_decode);
    totals->n_tokens = totals->n_prefill_tokens + totals->n_decode_seqs;
    totals->n_sampled = totals->n_prefill_seqs + totals->n_decode_seqs;
    if (totals->n_tokens == 0)
        sample->op = FIT_NONE;
    return 0;
}
