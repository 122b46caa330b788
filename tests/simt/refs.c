#include "refs.h"

#include <math.h>
#include <stdlib.h>

void gather_ref(double *out, const double *table, const int32_t *index, int32_t n_rows,
                int32_t n_table, int32_t width)
{
    for (int32_t r = 0; r < n_rows; r++)
        for (int32_t i = 0; i < width; i++)
            out[(size_t)r * width + i] =
                index[r] >= 0 && index[r] < n_table ? table[(size_t)index[r] * width + i] : 0.0;
}

static double root_mean_square(const double *v, int32_t n, double epsilon)
{
    double squares = 0.0;
    for (int32_t i = 0; i < n; i++)
        squares += v[i] * v[i];
    return sqrt(squares / n + epsilon);
}

void norm_ref(double *out, double *hidden, const double *delta, const double *weight,
              double epsilon, int32_t n_rows, int32_t width)
{
    for (int32_t r = 0; r < n_rows; r++) {
        double *row = hidden + (size_t)r * width;
        for (int32_t i = 0; delta && i < width; i++)
            row[i] += delta[(size_t)r * width + i];
        const double root = root_mean_square(row, width, epsilon);
        for (int32_t i = 0; i < width; i++)
            out[(size_t)r * width + i] = row[i] / root * weight[i];
    }
}

void swiglu_ref(double *out, const double *gate_up, int32_t n_rows, int32_t width)
{
    for (int32_t r = 0; r < n_rows; r++) {
        const double *gate = gate_up + (size_t)r * 2 * width, *up = gate + width;
        for (int32_t i = 0; i < width; i++)
            out[(size_t)r * width + i] = gate[i] / (1.0 + exp(-gate[i])) * up[i];
    }
}

int32_t argmax_ref(const float *logits, int32_t n_vocab)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n_vocab; i++)
        if (logits[i] > logits[best] || (isnan(logits[best]) && !isnan(logits[i])))
            best = i;
    return best;
}

void head_ref(double *head, const double *bias, const double *norm_weight, double epsilon,
              const float *angles, int32_t head_dim)
{
    const int32_t half = head_dim / 2;
    for (int32_t i = 0; bias && i < head_dim; i++)
        head[i] += bias[i];
    if (norm_weight) {
        const double root = root_mean_square(head, head_dim, epsilon);
        for (int32_t i = 0; i < head_dim; i++)
            head[i] = head[i] / root * norm_weight[i];
    }
    for (int32_t i = 0; angles && i < half; i++) {
        const double low = head[i], high = head[i + half];
        const double cosine = (double)angles[i], sine = (double)angles[half + i];
        head[i] = low * cosine - high * sine;
        head[i + half] = high * cosine + low * sine;
    }
}

static double dot(const double *a, const double *b, int32_t n)
{
    double sum = 0.0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* One row: q and out [head_dim], tokens of k and v stride apart. */
static void row_ref(double *out, const double *q, const double *k, const double *v,
                    int32_t n_visible, size_t stride, int32_t head_dim, double scale,
                    double *weight)
{
    double max = -INFINITY, sum = 0.0;
    for (int32_t t = 0; t < n_visible; t++) {
        weight[t] = scale * dot(q, k + (size_t)t * stride, head_dim);
        max = fmax(max, weight[t]);
    }
    for (int32_t t = 0; t < n_visible; t++)
        sum += weight[t] = exp(weight[t] - max);
    for (int32_t i = 0; i < head_dim; i++) {
        out[i] = 0.0;
        for (int32_t t = 0; t < n_visible; t++)
            out[i] += weight[t] / sum * v[(size_t)t * stride + i];
    }
}

void attn_ref(double *out, const double *q, const double *k, const double *v,
              const struct attn_ref_shape *shape)
{
    const int32_t dim = shape->head_dim, group = shape->n_heads / shape->n_kv_heads;
    const size_t stride = (size_t)shape->n_kv_heads * dim;
    double *weight = malloc((size_t)shape->kv_len * sizeof *weight);
    if (!weight)
        abort();
    for (int32_t i = 0; i < shape->q_len; i++) {
        for (int32_t h = 0; h < shape->n_heads; h++) {
            const size_t row = ((size_t)i * shape->n_heads + h) * dim,
                         head = (size_t)(h / group) * dim;
            const int32_t n_before = shape->kv_len - shape->q_len + i + 1;
            const int32_t n_seen = shape->window_tokens && n_before > shape->window_tokens
                                       ? shape->window_tokens
                                       : n_before;
            const size_t first = head + (size_t)(n_before - n_seen) * stride;
            row_ref(out + row, q + row, k + first, v + first, n_seen, stride, dim, shape->scale,
                    weight);
        }
    }
    free(weight);
}
