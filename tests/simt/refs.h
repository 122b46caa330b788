/* References of the kernels in plain double precision. */
#ifndef TESTS_SIMT_REFS_H
#define TESTS_SIMT_REFS_H

#include <stddef.h>
#include <stdint.h>

void gather_ref(double *out, const double *table, const int32_t *index, int32_t n_rows,
                int32_t n_table, int32_t width);
/* hidden is updated; delta may be NULL. */
void norm_ref(double *out, double *hidden, const double *delta, const double *weight,
              double epsilon, int32_t n_rows, int32_t width);
void swiglu_ref(double *out, const double *gate_up, int32_t n_rows, int32_t width);
int32_t argmax_ref(const float *logits, int32_t n_vocab);

/* One head of one token, in place. angles: cosines then sines, head_dim / 2 each; NULL for V. */
void head_ref(double *head, const double *bias, const double *norm_weight, double epsilon,
              const float *angles, int32_t head_dim);

struct attn_ref_shape {
    int32_t q_len, kv_len, n_heads, n_kv_heads, head_dim;
    double scale;
    int32_t window_tokens; /* 0: none */
};
/* One sequence: q and out [q_len][n_heads][head_dim], k and v [kv_len][n_kv_heads][head_dim]; new
 * token i sees the first kv_len - q_len + i + 1, of these the last window_tokens. */
void attn_ref(double *out, const double *q, const double *k, const double *v,
              const struct attn_ref_shape *shape);

#endif
