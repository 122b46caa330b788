/* The decoder's forward pass over some rows of a step, layer by layer. */
#include <string.h>

#include "blas.h"
#include "engine.h"
#include "inflight/minmax.h"
#include "step_slots.h"

/* y = x w^T + keep y. One row is a matrix-vector product, which reads w at the speed of memory. */
static void multiply(int32_t n, const float *x, const float *w, size_t n_out, size_t n_in,
                     float keep, float *y)
{
    const int32_t out = (int32_t)n_out, in = (int32_t)n_in;
    if (n == 1)
        blas_multiply_vector(out, in, w, x, keep, y);
    else
        blas_multiply_transposed(n, out, in, 1, (struct matrix){x, in}, (struct matrix){w, in},
                                 keep, y, out);
}

void cpu_multiply(int32_t n, const float *x, const float *w, size_t n_out, size_t n_in, float *y)
{
    multiply(n, x, w, n_out, n_in, 0, y);
}

void cpu_multiply_add(int32_t n, const float *x, const float *w, size_t n_out, size_t n_in,
                      float *y)
{
    multiply(n, x, w, n_out, n_in, 1, y);
}

void cpu_normalise(const struct cpu_pass *pass, const float *weight)
{
    const struct cpu_scratch *s = &pass->engine->scratch;
    const size_t d = (size_t)pass->engine->limits.model.d_model;
    for (size_t i = 0; i < (size_t)pass->n; i++)
        cpu_rms_norm(s->x + i * d, weight, pass->engine->architecture.norm_epsilon, d,
                     s->normed + i * d);
}

static void embed(const struct cpu_pass *pass)
{
    const size_t d = (size_t)pass->engine->limits.model.d_model;
    const float *table = pass->engine->at[0][WEIGHT_EMBEDDING];
    for (size_t i = 0; i < (size_t)pass->n; i++) {
        const size_t token = (size_t)pass->step->token_ids[(size_t)pass->first + i];
        memcpy(pass->engine->scratch.x + i * d, table + token * d, d * sizeof *table);
    }
}

/* ---- from stage to stage ---- */

static size_t pass_bytes(const struct cpu_pass *pass)
{
    return (size_t)pass->n * (size_t)pass->engine->limits.model.d_model * sizeof(float);
}

static float *handed_rows(const struct cpu_pass *pass)
{
    return pass->handed + (size_t)pass->first * (size_t)pass->engine->limits.model.d_model;
}

static void begin(const struct cpu_pass *pass)
{
    if (pass->engine->first_layer == 0)
        embed(pass);
    else
        memcpy(pass->engine->scratch.x, handed_rows(pass), pass_bytes(pass));
}

static void hand_over(const struct cpu_pass *pass)
{
    memcpy(handed_rows(pass), pass->engine->scratch.x, pass_bytes(pass));
}

/* ---- attention ---- */

static void turn_heads(const struct cpu_pass *pass, float *heads, int32_t n_heads,
                       const float *norm, int32_t position)
{
    const struct cpu_engine *engine = pass->engine;
    const size_t d = (size_t)engine->limits.model.d_head, half = d / 2;
    const size_t angles = (size_t)position * half;
    for (size_t h = 0; h < (size_t)n_heads; h++) {
        if (norm)
            cpu_rms_norm(heads + h * d, norm, engine->architecture.norm_epsilon, d, heads + h * d);
        cpu_rotate(heads + h * d, engine->cosines + angles, engine->sines + angles, half);
    }
}

static void store(const struct cpu_pass *pass, int32_t layer, int32_t k_or_v, const float *heads,
                  int32_t slot, const uint32_t *blocks)
{
    const struct ifl_engine_model *m = &pass->engine->limits.model;
    const int32_t block_tokens = pass->engine->limits.block_tokens;
    const size_t d = (size_t)m->d_head;
    for (int32_t h = 0; h < m->n_kv_heads; h++) {
        void *row = cpu_block_row(pass->engine, blocks[slot / block_tokens], layer, k_or_v, h,
                                  slot % block_tokens);
        if (cpu_has_e4m3(pass->engine))
            cpu_narrow(heads + (size_t)h * d, d, row);
        else
            memcpy(row, heads + (size_t)h * d, d * sizeof *heads);
    }
}

/* Norms and rotary positions on queries and keys; keys and values into their blocks. */
static void place_row(const struct cpu_pass *pass, int32_t layer, int32_t seq, int32_t row)
{
    const struct cpu_engine *engine = pass->engine;
    const struct ifl_engine_model *m = &engine->limits.model;
    const float *const *w = engine->at[layer];
    const size_t d = (size_t)m->d_head;
    const size_t q_width = (size_t)m->n_q_heads * d, kv_width = (size_t)m->n_kv_heads * d;
    float *q = engine->scratch.qkv + (size_t)(row - pass->first) * (q_width + 2 * kv_width);
    float *k = q + q_width, *v = k + kv_width;
    const int32_t position = pass->step->positions[row], slot = step_slot(pass->step, row);
    const uint32_t *blocks = pass->step->block_ids + pass->step->first_block[seq];
    turn_heads(pass, q, m->n_q_heads, w[WEIGHT_Q_NORM], position);
    turn_heads(pass, k, m->n_kv_heads, w[WEIGHT_K_NORM], position);
    store(pass, layer, 0, k, slot, blocks);
    store(pass, layer, 1, v, slot, blocks);
}

static int32_t seq_of_row(const struct ifl_engine_step *step, int32_t row)
{
    int32_t low = 0, high = step->n_seqs;
    while (high - low > 1) {
        const int32_t middle = (low + high) / 2;
        *(step->first_token[middle] <= row ? &low : &high) = middle;
    }
    return low;
}

/* The end of sequence seq's rows within the pass. */
static int32_t end_of(const struct cpu_pass *pass, int32_t seq)
{
    const int32_t end = pass->first + pass->n, to = pass->step->first_token[seq + 1];
    return ifl_min(to, end);
}

void cpu_place(const struct cpu_pass *pass, int32_t layer)
{
    int32_t seq = seq_of_row(pass->step, pass->first);
    for (int32_t row = pass->first; row < pass->first + pass->n; seq++)
        for (const int32_t to = end_of(pass, seq); row < to; row++)
            place_row(pass, layer, seq, row);
}

void cpu_attend(const struct cpu_pass *pass, int32_t layer)
{
    int32_t seq = seq_of_row(pass->step, pass->first);
    for (int32_t row = pass->first, to; row < pass->first + pass->n; row = to, seq++) {
        to = end_of(pass, seq);
        cpu_attend_seq(pass, layer, seq, row, to - row);
    }
}

/* Queries, keys and values lie side by side. */
static void adapt_qkv(const struct cpu_pass *pass, int32_t layer)
{
    const struct ifl_engine_model *m = &pass->engine->limits.model;
    const struct cpu_scratch *s = &pass->engine->scratch;
    const int32_t q_width = m->n_q_heads * m->d_head, kv_width = m->n_kv_heads * m->d_head;
    struct cpu_adapted of = {s->normed, m->d_model, s->qkv, q_width + 2 * kv_width};
    cpu_adapt(pass, layer, ADAPTER_OF_Q, &of);
    of.y = s->qkv + q_width;
    cpu_adapt(pass, layer, ADAPTER_OF_K, &of);
    of.y = s->qkv + q_width + kv_width;
    cpu_adapt(pass, layer, ADAPTER_OF_V, &of);
}

static void adapt_mlp(const struct cpu_pass *pass, int32_t layer)
{
    const struct ifl_engine_model *m = &pass->engine->limits.model;
    const struct cpu_scratch *s = &pass->engine->scratch;
    struct cpu_adapted of = {s->normed, m->d_model, s->gate_up, 2 * m->d_ffn};
    cpu_adapt(pass, layer, ADAPTER_OF_GATE, &of);
    of.y = s->gate_up + m->d_ffn;
    cpu_adapt(pass, layer, ADAPTER_OF_UP, &of);
}

static void attention_part(const struct cpu_pass *pass, int32_t layer)
{
    const struct ifl_engine_model *m = &pass->engine->limits.model;
    const struct cpu_scratch *s = &pass->engine->scratch;
    const float *const *w = pass->engine->at[layer];
    const size_t d_model = (size_t)m->d_model, q_width = (size_t)m->n_q_heads * (size_t)m->d_head;
    const size_t qkv_width = q_width + 2 * (size_t)m->n_kv_heads * (size_t)m->d_head;
    cpu_normalise(pass, w[WEIGHT_NORM_IN]);
    cpu_multiply(pass->n, s->normed, w[WEIGHT_Q], qkv_width, d_model, s->qkv);
    adapt_qkv(pass, layer);
    cpu_add_bias(s->qkv, (size_t)pass->n, qkv_width, w[WEIGHT_Q_BIAS]);
    cpu_place(pass, layer);
    cpu_attend(pass, layer);
    cpu_multiply_add(pass->n, s->attended, w[WEIGHT_OUT], d_model, q_width, s->x);
    cpu_adapt(pass, layer, ADAPTER_OF_OUT,
              &(struct cpu_adapted){s->attended, (int32_t)q_width, s->x, m->d_model});
    cpu_add_bias(s->x, (size_t)pass->n, d_model, w[WEIGHT_OUT_BIAS]);
}

/* ---- MLP ---- */

void cpu_activate(const struct cpu_pass *pass)
{
    const struct cpu_scratch *s = &pass->engine->scratch;
    const size_t d_ffn = (size_t)pass->engine->limits.model.d_ffn;
    for (size_t i = 0; i < (size_t)pass->n; i++)
        cpu_swiglu(s->gate_up + i * 2 * d_ffn, d_ffn, s->activated + i * d_ffn);
}

static void mlp_part(const struct cpu_pass *pass, int32_t layer)
{
    const struct ifl_engine_model *m = &pass->engine->limits.model;
    const struct cpu_scratch *s = &pass->engine->scratch;
    const float *const *w = pass->engine->at[layer];
    const size_t d_model = (size_t)m->d_model, d_ffn = (size_t)m->d_ffn;
    cpu_normalise(pass, w[WEIGHT_NORM_MLP]);
    cpu_multiply(pass->n, s->normed, w[WEIGHT_GATE], 2 * d_ffn, d_model, s->gate_up);
    adapt_mlp(pass, layer);
    cpu_add_bias(s->gate_up, (size_t)pass->n, 2 * d_ffn, w[WEIGHT_GATE_BIAS]);
    cpu_activate(pass);
    cpu_multiply_add(pass->n, s->activated, w[WEIGHT_DOWN], d_model, d_ffn, s->x);
    cpu_adapt(pass, layer, ADAPTER_OF_DOWN,
              &(struct cpu_adapted){s->activated, m->d_ffn, s->x, m->d_model});
    cpu_add_bias(s->x, (size_t)pass->n, d_model, w[WEIGHT_DOWN_BIAS]);
}

/* ---- the next tokens ---- */

/* The rows of the pass that have logits, normalised and packed. */
static int32_t gather_rows(const struct cpu_pass *pass)
{
    const struct ifl_engine_step *step = pass->step;
    const struct cpu_scratch *s = &pass->engine->scratch;
    const size_t d = (size_t)pass->engine->limits.model.d_model;
    int32_t n = 0, row = pass->first;
    for (int32_t seq = seq_of_row(step, row); row < pass->first + pass->n; seq++) {
        const int32_t first = step_first_row(step, seq), to = end_of(pass, seq);
        for (row = ifl_max(row, first); row < to; row++, n++)
            cpu_rms_norm(s->x + (size_t)(row - pass->first) * d,
                         pass->engine->at[0][WEIGHT_NORM_END],
                         pass->engine->architecture.norm_epsilon, d, s->normed + (size_t)n * d);
        row = to;
    }
    return n;
}

static int32_t sample(const struct cpu_pass *pass, int32_t *sampled, float *logits_out)
{
    const struct cpu_engine *engine = pass->engine;
    const struct cpu_scratch *s = &engine->scratch;
    const size_t d = (size_t)engine->limits.model.d_model;
    const size_t n_vocab = (size_t)engine->limits.model.n_vocab;
    const bool tied = engine->limits.model.tied_embeddings;
    const float *head = engine->at[0][tied ? WEIGHT_EMBEDDING : WEIGHT_HEAD];
    const int32_t n = gather_rows(pass);
    for (int32_t i = 0, m; i < n; i += m) {
        m = ifl_min(n - i, CPU_LOGIT_ROWS);
        cpu_multiply(m, s->normed + (size_t)i * d, head, n_vocab, d, s->logits);
        for (int32_t j = 0; j < m; j++)
            sampled[i + j] = cpu_argmax(s->logits + (size_t)j * n_vocab, (int32_t)n_vocab);
        if (logits_out)
            memcpy(logits_out + (size_t)i * n_vocab, s->logits,
                   (size_t)m * n_vocab * sizeof *logits_out);
    }
    return n;
}

int32_t cpu_forward(const struct cpu_pass *pass, int32_t *sampled, float *logits)
{
    ifl_assert(pass->n > 0 && pass->n <= CPU_PASS_TOKENS);
    ifl_assert(pass->first >= 0 && pass->first + pass->n <= pass->step->n_tokens);
    const volatile sig_atomic_t *stop = pass->engine->limits.stop;
    begin(pass);
    for (int32_t layer = pass->engine->first_layer; layer < pass->engine->end_layer; layer++) {
        if (stop && *stop)
            return 0;
        attention_part(pass, layer);
        mlp_part(pass, layer);
    }
    if (pass->engine->end_layer == pass->engine->limits.model.n_layers)
        return sample(pass, sampled, logits);
    hand_over(pass);
    return 0;
}
