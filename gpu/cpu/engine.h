/* The CPU engine: fp32 everywhere, OpenBLAS for every matrix product. K and V may be stored in
 * e4m3; they are widened to fp32 when they are read.
 *
 * A step's tokens are computed in passes of at most CPU_PASS_TOKENS rows of the ragged
 * concatenation, whatever sequences they belong to; a later pass reads the K/V that an earlier one
 * wrote, so that scratch memory does not grow with the step. Only attention looks at sequences. */
#ifndef GPU_CPU_ENGINE_H
#define GPU_CPU_ENGINE_H

#include "adapters.h"
#include "architecture.h"
#include "weights.h"

enum {
    CPU_PASS_TOKENS = 512,
    CPU_LOGIT_ROWS = 64, /* rows of logits at a time */
    CPU_QUERY_ROWS = 64, /* tile of attention over a prompt: queries x keys */
    CPU_KEY_ROWS = 256,
    CPU_FEW_ROWS = 8, /* below, attention runs a query at a time, straight from the blocks */
};

struct cpu_scratch {  /* n: rows of a pass */
    float *x;         /* [n][d_model] the residual stream */
    float *normed;    /* [n][d_model] */
    float *qkv;       /* [n][(n_q_heads + 2 n_kv_heads) d_head] */
    float *attended;  /* [n][n_q_heads d_head] */
    float *gate_up;   /* [n][2 d_ffn] */
    float *activated; /* [n][d_ffn] */
    float *scores;    /* [max(CPU_QUERY_ROWS, query heads of a KV head)][max_tokens] */
    float *tile;      /* [CPU_KEY_ROWS][d_head] */
    float *span;      /* [block_tokens][d_head] widened K or V of a block */
    float *logits;    /* [CPU_LOGIT_ROWS][n_vocab] */
    float *narrow;    /* [n][largest rank of an adapter] x A */
};

struct cpu_adapters {
    const float **at; /* [n_adapters][n_layers][N_ADAPTER_TARGETS][2] A and B; NULL: none */
    float *numbers;
    int32_t *ranks; /* [n_adapters] */
};

struct cpu_engine {
    struct ifl_engine_options limits; /* weights_dir is not kept */
    struct architecture architecture;
    float *weights;
    float *bench;                       /* [limits.bench_bytes] what measure works on */
    const float *(*at)[N_WEIGHT_ROLES]; /* [n_layers]; weights outside layers are in at[0] */
    unsigned char *kv, *host; /* [blocks][block_bytes], elements as limits.kv_dtype says */
    size_t block_bytes, element_bytes;
    float widened[256];     /* the numbers of e4m3 */
    float *cosines, *sines; /* [max_tokens][d_head / 2] */
    struct cpu_scratch scratch;
    struct cpu_adapters adapters;
    int32_t first_layer, end_layer; /* layers that a step computes */
    /* A pipeline: a stage is this engine with layers and scratch memory of its own. */
    struct cpu_engine *stages; /* [limits.n_stages], or NULL */
    float *handed;             /* [limits.max_in_flight][max_step_tokens][d_model] x between
                                * two stages */
};

/* ---- memory.c ---- */

int cpu_take_memory(struct cpu_engine *engine, struct ifl_error *error);
void cpu_give_memory(struct cpu_engine *engine);
/* Creates the stages. Call it when the engine has everything else. */
int cpu_take_stages(struct cpu_engine *engine, const int32_t *layers, struct ifl_error *error);
int cpu_load_weights(struct cpu_engine *engine, const struct weight_source *source,
                     struct ifl_error *error);

/* ---- forward.c ---- */

struct cpu_pass {
    struct cpu_engine *engine;
    const struct ifl_engine_step *step;
    int32_t first, n; /* rows of the step */
    float *votes;     /* of the step, or NULL */
    float *handed;    /* [n_tokens of the step][d_model] from stage to stage; NULL: there is one */
};

/* `sampled` receives a token and `logits`, unless it is NULL, n_vocab numbers for each row of
 * logits in the pass. Returns the number of those rows. */
int32_t cpu_forward(const struct cpu_pass *pass, int32_t *sampled, float *logits);

/* Operations of a pass. cpu_multiply: y[n][n_out] = x[n][n_in] w[n_out][n_in]^T; cpu_multiply_add
 * adds that product to y; the others work on the rows of a pass. */
void cpu_multiply(int32_t n, const float *x, const float *w, size_t n_out, size_t n_in, float *y);
void cpu_multiply_add(int32_t n, const float *x, const float *w, size_t n_out, size_t n_in,
                      float *y);
void cpu_normalise(const struct cpu_pass *pass, const float *weight);
void cpu_place(const struct cpu_pass *pass, int32_t layer);
void cpu_attend(const struct cpu_pass *pass, int32_t layer);
void cpu_activate(const struct cpu_pass *pass);

/* ---- adapters.c ---- */

int32_t cpu_most_rank(const struct cpu_engine *engine);
int cpu_open_adapters(struct cpu_engine *engine, struct ifl_error *error);
void cpu_close_adapters(struct cpu_engine *engine);

/* Inputs and outputs of a product; consecutive rows of the pass are a stride apart. */
struct cpu_adapted {
    const float *x;
    int32_t x_stride;
    float *y;
    int32_t y_stride;
};
/* Adds the products of the rows' adapters to the outputs. */
void cpu_adapt(const struct cpu_pass *pass, int32_t layer, enum adapter_target target,
               const struct cpu_adapted *of);

/* ---- measure.c ---- */

int cpu_measure(void *self, struct ifl_engine_op *op, struct ifl_error *error);
int cpu_describe(const void *self, struct ifl_engine_machine *machine, struct ifl_error *error);

/* ---- attention.c ---- */

/* Tokens [first, first + n) of the step, which are in the pass and of sequence seq. */
void cpu_attend_seq(const struct cpu_pass *pass, int32_t layer, int32_t seq, int32_t first,
                    int32_t n);

static inline bool cpu_has_e4m3(const struct cpu_engine *engine)
{
    return engine->limits.kv_dtype == IFL_DTYPE_FP8;
}

/* Returns the address of d_head elements in the pool. */
static inline void *cpu_block_row(const struct cpu_engine *engine, uint32_t block, int32_t layer,
                                  int32_t k_or_v, int32_t kv_head, int32_t token)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    ifl_assert(block < (uint32_t)engine->limits.n_blocks);
    ifl_assert(layer >= 0 && layer < m->n_layers && kv_head >= 0 && kv_head < m->n_kv_heads);
    ifl_assert((k_or_v == 0 || k_or_v == 1) && token >= 0 && token < engine->limits.block_tokens);
    const size_t head =
        ((size_t)layer * 2 + (size_t)k_or_v) * (size_t)m->n_kv_heads + (size_t)kv_head;
    return engine->kv + (size_t)block * engine->block_bytes +
           (head * (size_t)engine->limits.block_tokens + (size_t)token) * (size_t)m->d_head *
               engine->element_bytes;
}

/* ---- rows.c: what works on one row at a time ---- */

void cpu_rms_norm(const float *x, const float *weight, double epsilon, size_t n, float *out);
void cpu_add_bias(float *rows, size_t n_rows, size_t n, const float *bias); /* bias may be NULL */
/* Rotates the pairs (x[i], x[i + half]) by the row's angles. */
void cpu_rotate(float *x, const float *cosines, const float *sines, size_t half);
void cpu_narrow(const float *x, size_t n, uint8_t *e4m3);
void cpu_widen(const float widened[256], const uint8_t *e4m3, size_t n, float *out);
int32_t cpu_argmax(const float *x, int32_t n);
float cpu_dot(const float *a, const float *b, size_t n);
/* out += scale x. */
void cpu_add_scaled(float *out, const float *x, float scale, size_t n);
/* exp(x - max) / sum, in place. */
void cpu_softmax(float *x, size_t n);

/* ---- exponentials.c ---- */

/* exp(x - max), in place. */
void cpu_exp_below(float *x, size_t n, float max);
/* out = silu(gate) up; gate_up holds n of each. */
void cpu_swiglu(const float *gate_up, size_t n, float *out);

#endif
