#include "dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters.h"
#include "architecture.h"
#include "checkpoint.h"

struct run {
    struct dense *dense;
    const struct checkpoint *checkpoint;
    double epsilon, theta;
    dense_sees_fn *sees;
    const void *context;
    dense_stored_fn *stored;                  /* NULL: as they are */
    const struct ifl_engine_options *adapted; /* NULL: without an adapter */
    int32_t adapter;
    double *x, *q, *k, *v; /* [n] rows of d_model, of all query heads, of all KV heads twice */
};

static double *doubles(size_t n)
{
    double *of = calloc(n, sizeof *of);
    ifl_require(of);
    return of;
}

/* NULL if there is none of that name. */
static double *tensor(const struct run *run, int32_t layer, const char *name, int32_t n_rows,
                      int32_t n_columns)
{
    const size_t n = (size_t)n_rows * (size_t)(n_columns ? n_columns : 1);
    struct ifl_error error;
    char full[96];
    if (layer < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "model.layers.%d.%s", layer, name);
    if (!checkpoint_has(run->checkpoint, full))
        return NULL;
    float *read = calloc(n, sizeof *read);
    double *numbers = doubles(n);
    ifl_require(read &&
                checkpoint_read(run->checkpoint, full, n_rows, n_columns, read, &error) == 0);
    for (size_t i = 0; i < n; i++)
        numbers[i] = read[i];
    free(read);
    return numbers;
}

/* ---- rows ---- */

static void normalise(double *x, int32_t n, const double *weight, double epsilon)
{
    double squares = 0;
    for (int32_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (int32_t i = 0; i < n; i++)
        x[i] = x[i] / sqrt(squares / n + epsilon) * weight[i];
}

/* Adds B A to the matrix of that name, if the adapter has one: it is merged (Hu et al. 2021, 4.1).
 */
static void merge(const struct run *run, int32_t layer, const char *name, double *w)
{
    static const char *const names[N_ADAPTER_TARGETS] = {
        "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
        "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
    enum adapter_target target = 0;
    while (target < N_ADAPTER_TARGETS && strcmp(names[target], name) != 0)
        target++;
    if (!run->adapted || target == N_ADAPTER_TARGETS ||
        !adapter_has(run->adapted->adapter_matrices, target))
        return;
    const struct adapter_matrix matrix = adapter_matrix_of(&run->dense->model, target);
    const size_t rank = (size_t)run->adapted->adapter_ranks[run->adapter - 1];
    const size_t n_in = (size_t)matrix.n_in, n_out = (size_t)matrix.n_out;
    float *a = calloc(rank * n_in, sizeof *a), *b = calloc(rank * n_out, sizeof *b);
    ifl_require(a && b);
    struct adapter_source source;
    struct ifl_error error;
    ifl_require(adapter_open(run->adapted, run->adapter, &source, &error) == 0);
    adapter_fill(&source, &(struct adapter_place){layer, target, false}, a, &error);
    adapter_fill(&source, &(struct adapter_place){layer, target, true}, b, &error);
    adapter_close(&source);
    for (size_t o = 0; o < n_out; o++)
        for (size_t i = 0; i < n_in; i++)
            for (size_t k = 0; k < rank; k++)
                w[o * n_in + i] += (double)b[o * rank + k] * (double)a[k * n_in + i];
    free(a);
    free(b);
}

/* y = x w^T + bias, of all tokens; a bias may be missing. */
static void project(const struct run *run, int32_t layer, const char *name, const double *x,
                    int32_t n_in, double *y, int32_t n_out)
{
    char weight_name[64], bias_name[64];
    snprintf(weight_name, sizeof weight_name, "%s.weight", name);
    snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    double *w = tensor(run, layer, weight_name, n_out, n_in);
    double *bias = tensor(run, layer, bias_name, n_out, 0);
    ifl_require(w);
    merge(run, layer, name, w);
    for (int32_t t = 0; t < run->dense->n; t++)
        for (int32_t o = 0; o < n_out; o++) {
            double sum = bias ? bias[o] : 0;
            for (int32_t i = 0; i < n_in; i++)
                sum += w[(size_t)o * (size_t)n_in + (size_t)i] *
                       x[(size_t)t * (size_t)n_in + (size_t)i];
            y[(size_t)t * (size_t)n_out + (size_t)o] = sum;
        }
    free(w);
    free(bias);
}

/* Every token's row, normalised; to be freed. */
static double *normed(const struct run *run, int32_t layer, const char *name)
{
    const int32_t d = run->dense->model.d_model;
    const size_t n = (size_t)run->dense->n * (size_t)d;
    double *weight = tensor(run, layer, name, d, 0), *rows = doubles(n);
    for (size_t i = 0; i < n; i++)
        rows[i] = run->x[i];
    for (int32_t t = 0; t < run->dense->n; t++)
        normalise(rows + (size_t)t * (size_t)d, d, weight, run->epsilon);
    free(weight);
    return rows;
}

static void add(double *x, double *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
    free(y);
}

/* ---- attention ---- */

/* Su et al. 2021, pairs (i, i + d / 2). */
static void turn(double *head, int32_t d, int32_t position, double theta)
{
    for (int32_t i = 0; i < d / 2; i++) {
        const double angle = position * pow(theta, -2.0 * i / d);
        const double a = head[i], b = head[i + d / 2];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + d / 2] = b * cos(angle) + a * sin(angle);
    }
}

static void turn_all(const struct run *run, int32_t layer, double *heads, int32_t n_heads,
                     const char *norm)
{
    const int32_t d = run->dense->model.d_head;
    double *weight = tensor(run, layer, norm, d, 0);
    for (int32_t t = 0; t < run->dense->n; t++)
        for (int32_t h = 0; h < n_heads; h++) {
            double *head = heads + (size_t)(t * n_heads + h) * (size_t)d;
            if (weight)
                normalise(head, d, weight, run->epsilon);
            turn(head, d, t, run->theta);
        }
    free(weight);
}

static void attend(const struct run *run, int32_t layer, int32_t head, int32_t query, double *out)
{
    const struct ifl_engine_model *m = &run->dense->model;
    const int32_t d = m->d_head, kv_head = head / (m->n_q_heads / m->n_kv_heads), n = run->dense->n;
    double *p = run->dense->probabilities +
                ((size_t)(layer * m->n_q_heads + head) * (size_t)n + (size_t)query) * (size_t)n;
    const double *q = run->q + (size_t)(query * m->n_q_heads + head) * (size_t)d;
    double sum = 0;
    for (int32_t key = 0; key <= query; key++) {
        const double *k = run->k + (size_t)(key * m->n_kv_heads + kv_head) * (size_t)d;
        double score = 0;
        for (int32_t i = 0; i < d; i++)
            score += q[i] * k[i];
        if (!run->sees || run->sees(run->context, layer, kv_head, query, key))
            sum += p[key] = exp(score / sqrt(d)); /* scores are small: no maximum to take off */
    }
    for (int32_t key = 0; key <= query; key++) {
        const double *v = run->v + (size_t)(key * m->n_kv_heads + kv_head) * (size_t)d;
        p[key] /= sum;
        for (int32_t i = 0; i < d; i++)
            out[i] += p[key] * v[i];
    }
}

static void store(const struct run *run, double *heads, int32_t width)
{
    for (size_t i = 0; run->stored && i < (size_t)run->dense->n * (size_t)width; i++)
        heads[i] = run->stored(heads[i]);
}

static double *attention(const struct run *run, int32_t layer)
{
    const struct ifl_engine_model *m = &run->dense->model;
    const int32_t q_width = m->n_q_heads * m->d_head, kv_width = m->n_kv_heads * m->d_head;
    double *x = normed(run, layer, "input_layernorm.weight");
    double *attended = doubles((size_t)run->dense->n * (size_t)q_width);
    double *y = doubles((size_t)run->dense->n * (size_t)m->d_model);
    project(run, layer, "self_attn.q_proj", x, m->d_model, run->q, q_width);
    project(run, layer, "self_attn.k_proj", x, m->d_model, run->k, kv_width);
    project(run, layer, "self_attn.v_proj", x, m->d_model, run->v, kv_width);
    turn_all(run, layer, run->q, m->n_q_heads, "self_attn.q_norm.weight");
    turn_all(run, layer, run->k, m->n_kv_heads, "self_attn.k_norm.weight");
    store(run, run->k, kv_width);
    store(run, run->v, kv_width);
    for (int32_t query = 0; query < run->dense->n; query++)
        for (int32_t head = 0; head < m->n_q_heads; head++)
            attend(run, layer, head, query,
                   attended + (size_t)(query * m->n_q_heads + head) * (size_t)m->d_head);
    project(run, layer, "self_attn.o_proj", attended, q_width, y, m->d_model);
    free(attended);
    free(x);
    return y;
}

/* ---- the rest ---- */

static double *mlp(const struct run *run, int32_t layer)
{
    const struct ifl_engine_model *m = &run->dense->model;
    const size_t n = (size_t)run->dense->n * (size_t)m->d_ffn;
    double *x = normed(run, layer, "post_attention_layernorm.weight");
    double *gate = doubles(n), *up = doubles(n);
    double *y = doubles((size_t)run->dense->n * (size_t)m->d_model);
    project(run, layer, "mlp.gate_proj", x, m->d_model, gate, m->d_ffn);
    project(run, layer, "mlp.up_proj", x, m->d_model, up, m->d_ffn);
    for (size_t i = 0; i < n; i++)
        up[i] *= gate[i] / (1 + exp(-gate[i]));
    project(run, layer, "mlp.down_proj", up, m->d_ffn, y, m->d_model);
    free(gate);
    free(up);
    free(x);
    return y;
}

static void embed(const struct run *run, const int32_t *tokens)
{
    const struct ifl_engine_model *m = &run->dense->model;
    const size_t d = (size_t)m->d_model;
    double *table = tensor(run, -1, "model.embed_tokens.weight", m->n_vocab, m->d_model);
    for (size_t i = 0; i < (size_t)run->dense->n * d; i++)
        run->x[i] = table[(size_t)tokens[i / d] * d + i % d];
    free(table);
}

static void compute(struct run *run, const int32_t *tokens)
{
    const struct ifl_engine_model *m = &run->dense->model;
    const size_t n = (size_t)run->dense->n, n_logits = n * (size_t)m->n_vocab;
    embed(run, tokens);
    for (int32_t layer = 0; layer < m->n_layers; layer++) {
        add(run->x, attention(run, layer), n * (size_t)m->d_model);
        add(run->x, mlp(run, layer), n * (size_t)m->d_model);
    }
    double *x = normed(run, -1, "model.norm.weight"), *logits = doubles(n_logits);
    project(run, -1, "lm_head", x, m->d_model, logits, m->n_vocab);
    for (size_t i = 0; i < n_logits; i++)
        run->dense->logits[i] = (float)logits[i];
    free(logits);
    free(x);
}

void dense_run(struct dense *dense, const struct fixture_model *fixture, dense_sees_fn *sees,
               const void *context)
{
    dense_run_stored(dense, fixture, sees, context, NULL);
}

void dense_run_stored(struct dense *dense, const struct fixture_model *fixture, dense_sees_fn *sees,
                      const void *context, dense_stored_fn *stored)
{
    const struct dense_how how = {.sees = sees, .context = context, .stored = stored};
    dense_run_as(dense, fixture, &how);
}

void dense_run_as(struct dense *dense, const struct fixture_model *fixture,
                  const struct dense_how *how)
{
    struct architecture architecture;
    struct checkpoint checkpoint;
    struct ifl_error error;
    const struct ifl_engine_model *m = &fixture->model;
    const size_t n = (size_t)fixture->n_tokens, d = (size_t)m->d_head;
    *dense = (struct dense){.model = *m, .n = fixture->n_tokens};
    dense->logits = calloc(n * (size_t)m->n_vocab, sizeof *dense->logits);
    dense->probabilities = doubles((size_t)m->n_layers * (size_t)m->n_q_heads * n * n);
    ifl_require(dense->logits && architecture_read(fixture->dir, m, &architecture, &error) == 0 &&
                checkpoint_open(fixture->dir, &checkpoint, &error) == 0);
    struct run run = {.dense = dense,
                      .checkpoint = &checkpoint,
                      .epsilon = architecture.norm_epsilon,
                      .theta = architecture.rope_theta,
                      .sees = how->sees,
                      .context = how->context,
                      .stored = how->stored,
                      .adapted = how->adapted,
                      .adapter = how->adapter,
                      .x = doubles(n * (size_t)m->d_model),
                      .q = doubles(n * (size_t)m->n_q_heads * d),
                      .k = doubles(n * (size_t)m->n_kv_heads * d),
                      .v = doubles(n * (size_t)m->n_kv_heads * d)};
    compute(&run, fixture->tokens);
    checkpoint_close(&checkpoint);
    free(run.x);
    free(run.q);
    free(run.k);
    free(run.v);
}

void dense_free(struct dense *dense)
{
    free(dense->logits);
    free(dense->probabilities);
}

double dense_votes(const struct dense *dense, int32_t layer, int32_t kv_head, int32_t first,
                   int32_t end, int32_t key)
{
    const struct ifl_engine_model *m = &dense->model;
    const int32_t group = m->n_q_heads / m->n_kv_heads;
    const size_t n = (size_t)dense->n;
    double sum = 0;
    for (int32_t head = kv_head * group; head < (kv_head + 1) * group; head++)
        for (int32_t query = first; query < end; query++)
            sum +=
                dense->probabilities[((size_t)(layer * m->n_q_heads + head) * n + (size_t)query) *
                                         n +
                                     (size_t)key];
    return sum;
}
