/* Tables of casys-kaist/LLMServingSim, profiler output of vLLM: one model, Llama-3.1-8B, on one
 * GPU; times in us. */
#include <string.h>

#include "fit/adapters.h"

/* config.json of meta-llama/Llama-3.1-8B */
enum {
    D_MODEL = 4096,
    Q_HEADS = 32,
    KV_HEADS = 8,
    D_HEAD = 128,
    D_FFN = 14336,
    VOCAB = 128256,
    BYTES = 2,
};

static double us_of(const struct adapter_row *row, int i, int *code, struct ifl_error *error)
{
    return adapter_number(row, i, 1e-6, code, error) * 1e-6;
}

int llmservingsim_attention(const struct adapter_row *row, struct fit_sample *sample,
                            struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){
        .q_heads = Q_HEADS, .kv_heads = KV_HEADS, .d_head = D_HEAD, .element_bytes = BYTES};
    sample->new_tokens = adapter_number(row, 0, 0, &code, error);
    sample->context_tokens = adapter_number(row, 1, 0, &code, error);
    sample->n_decode_seqs = adapter_number(row, 2, 0, &code, error);
    sample->decode_context_tokens = adapter_number(row, 3, 0, &code, error);
    sample->measured_s = us_of(row, 4, &code, error);
    snprintf(sample->group, sizeof sample->group, "%.0f + %.0f", sample->new_tokens,
             sample->n_decode_seqs);
    if (sample->new_tokens > 0) {
        sample->op = sample->n_decode_seqs > 0 ? FIT_DECODE_MIXED : FIT_PREFILL;
        sample->n_seqs = 1;
    } else if (sample->n_decode_seqs > 0) {
        sample->op = FIT_DECODE;
        sample->n_seqs = sample->n_decode_seqs;
        sample->new_tokens = 1;
        sample->context_tokens = sample->decode_context_tokens;
    }
    return code;
}

static void set_product(struct fit_sample *sample, double m, double n, double k)
{
    sample->op = FIT_GEMM;
    sample->m = m;
    sample->n = n;
    sample->k = k;
    sample->element_bytes = BYTES;
    snprintf(sample->layer, sizeof sample->layer, "Llama-3.1-8B/1/%.0f", m);
}

static void set_elements(struct fit_sample *sample, double m, double elements)
{
    sample->op = FIT_ELEMENTWISE;
    sample->bytes = m * elements * BYTES;
}

int llmservingsim_dense(const struct adapter_row *row, struct fit_sample *sample,
                        struct ifl_error *error)
{
    int code = 0;
    const char *layer = adapter_text(row, 0);
    *sample = (struct fit_sample){.op = FIT_NONE};
    const double m = adapter_number(row, 1, 1, &code, error);
    sample->measured_s = us_of(row, 2, &code, error);
    snprintf(sample->group, sizeof sample->group, "%.40s", layer);
    if (strcmp(layer, "qkv_proj") == 0)
        set_product(sample, m, (Q_HEADS + 2 * KV_HEADS) * D_HEAD, D_MODEL);
    else if (strcmp(layer, "o_proj") == 0)
        set_product(sample, m, D_MODEL, Q_HEADS * D_HEAD);
    else if (strcmp(layer, "gate_up_proj") == 0)
        set_product(sample, m, 2 * D_FFN, D_MODEL);
    else if (strcmp(layer, "down_proj") == 0)
        set_product(sample, m, D_MODEL, D_FFN);
    else if (strcmp(layer, "act_fn") == 0)
        set_elements(sample, m, 3 * D_FFN);
    else if (strcmp(layer, "rotary_emb") == 0)
        set_elements(sample, m, 2 * (Q_HEADS + KV_HEADS) * D_HEAD);
    else if (strcmp(layer, "layernorm") == 0) /* adds the residual, which it also writes */
        set_elements(sample, m, 4 * D_MODEL);
    return code;
}

int llmservingsim_per_sequence(const struct adapter_row *row, struct fit_sample *sample,
                               struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_NONE};
    const double m = adapter_number(row, 1, 1, &code, error);
    sample->measured_s = us_of(row, 2, &code, error);
    snprintf(sample->group, sizeof sample->group, "%.40s", adapter_text(row, 0));
    if (strcmp(adapter_text(row, 0), "lm_head") == 0)
        set_product(sample, m, VOCAB, D_MODEL);
    sample->layer[0] = '\0';
    return code;
}
