#include "weights.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>

#include "inflight/random.h"
#include "parallel.h"

/* ---- which there are ---- */

enum width { D_MODEL, D_Q, D_KV, D_HEAD, D_FFN, D_VOCAB, NONE };

static const struct role {
    enum width rows, columns; /* columns NONE: a vector */
    const char *name;         /* within the layer, or whole */
} roles[N_WEIGHT_ROLES] = {
    [WEIGHT_EMBEDDING] = {D_VOCAB, D_MODEL, "model.embed_tokens.weight"},
    [WEIGHT_NORM_IN] = {D_MODEL, NONE, "input_layernorm.weight"},
    [WEIGHT_Q] = {D_Q, D_MODEL, "self_attn.q_proj.weight"},
    [WEIGHT_K] = {D_KV, D_MODEL, "self_attn.k_proj.weight"},
    [WEIGHT_V] = {D_KV, D_MODEL, "self_attn.v_proj.weight"},
    [WEIGHT_Q_BIAS] = {D_Q, NONE, "self_attn.q_proj.bias"},
    [WEIGHT_K_BIAS] = {D_KV, NONE, "self_attn.k_proj.bias"},
    [WEIGHT_V_BIAS] = {D_KV, NONE, "self_attn.v_proj.bias"},
    [WEIGHT_Q_NORM] = {D_HEAD, NONE, "self_attn.q_norm.weight"},
    [WEIGHT_K_NORM] = {D_HEAD, NONE, "self_attn.k_norm.weight"},
    [WEIGHT_OUT] = {D_MODEL, D_Q, "self_attn.o_proj.weight"},
    [WEIGHT_OUT_BIAS] = {D_MODEL, NONE, "self_attn.o_proj.bias"},
    [WEIGHT_NORM_MLP] = {D_MODEL, NONE, "post_attention_layernorm.weight"},
    [WEIGHT_GATE] = {D_FFN, D_MODEL, "mlp.gate_proj.weight"},
    [WEIGHT_UP] = {D_FFN, D_MODEL, "mlp.up_proj.weight"},
    [WEIGHT_GATE_BIAS] = {D_FFN, NONE, "mlp.gate_proj.bias"},
    [WEIGHT_UP_BIAS] = {D_FFN, NONE, "mlp.up_proj.bias"},
    [WEIGHT_DOWN] = {D_MODEL, D_FFN, "mlp.down_proj.weight"},
    [WEIGHT_DOWN_BIAS] = {D_MODEL, NONE, "mlp.down_proj.bias"},
    [WEIGHT_NORM_END] = {D_MODEL, NONE, "model.norm.weight"},
    [WEIGHT_HEAD] = {D_VOCAB, D_MODEL, "lm_head.weight"},
};

static int64_t width_of(const struct ifl_engine_model *m, enum width width)
{
    const int64_t widths[] = {
        [D_MODEL] = m->d_model,
        [D_Q] = (int64_t)m->n_q_heads * m->d_head,
        [D_KV] = (int64_t)m->n_kv_heads * m->d_head,
        [D_HEAD] = m->d_head,
        [D_FFN] = m->d_ffn,
        [D_VOCAB] = m->n_vocab,
        [NONE] = 0,
    };
    return widths[width];
}

static bool exists(const struct ifl_engine_model *m, enum weight_role role)
{
    switch (role) {
    case WEIGHT_Q_BIAS:
    case WEIGHT_K_BIAS:
    case WEIGHT_V_BIAS:
        return m->qkv_bias;
    case WEIGHT_OUT_BIAS:
        return m->out_bias;
    case WEIGHT_GATE_BIAS:
    case WEIGHT_UP_BIAS:
    case WEIGHT_DOWN_BIAS:
        return m->mlp_bias;
    case WEIGHT_Q_NORM:
    case WEIGHT_K_NORM:
        return m->qk_norm;
    case WEIGHT_HEAD:
        return !m->tied_embeddings;
    default:
        return true;
    }
}

static bool in_layer(enum weight_role role)
{
    return role >= WEIGHT_NORM_IN && role <= WEIGHT_DOWN_BIAS;
}

static int visit_one(const struct ifl_engine_model *m, enum weight_role role, int32_t layer,
                     weight_visit_fn *visit, void *context, struct ifl_error *error)
{
    struct weight weight = {
        .role = role,
        .layer = layer,
        .n_rows = width_of(m, roles[role].rows),
        .n_columns = width_of(m, roles[role].columns),
    };
    if (!exists(m, role))
        return 0;
    weight.n_numbers = (size_t)(weight.n_rows * (weight.n_columns ? weight.n_columns : 1));
    if (in_layer(role))
        snprintf(weight.name, sizeof weight.name, "model.layers.%d.%s", layer, roles[role].name);
    else
        snprintf(weight.name, sizeof weight.name, "%s", roles[role].name);
    return visit(context, &weight, error);
}

int weights_for_each(const struct ifl_engine_model *m, weight_visit_fn *visit, void *context,
                     struct ifl_error *error)
{
    int rc = visit_one(m, WEIGHT_EMBEDDING, 0, visit, context, error);
    for (int32_t layer = 0; rc == 0 && layer < m->n_layers; layer++)
        for (enum weight_role role = WEIGHT_NORM_IN; rc == 0 && in_layer(role); role++)
            rc = visit_one(m, role, layer, visit, context, error);
    if (rc == 0)
        rc = visit_one(m, WEIGHT_NORM_END, 0, visit, context, error);
    return rc ? rc : visit_one(m, WEIGHT_HEAD, 0, visit, context, error);
}

static int count_one(void *context, const struct weight *weight, struct ifl_error *error)
{
    (void)error;
    *(int64_t *)context += (int64_t)weight->n_numbers;
    return 0;
}

int64_t weights_count(const struct ifl_engine_model *model)
{
    int64_t n = 0;
    struct ifl_error error;
    weights_for_each(model, count_one, &n, &error);
    return n;
}

/* ---- where the numbers come from ---- */

enum { DRAWS_AT_LEAST = 1 << 16 }; /* less is not worth a thread */

/* Uniform around `middle`. */
struct drawing {
    uint64_t key;
    float middle, half_width;
    float *numbers;
};

/* One draw serves two numbers. */
static void draw(void *context, size_t first, size_t n)
{
    const struct drawing *d = context;
    for (size_t i = first; i < first + n; i++) {
        const uint64_t bits = ifl_mix(d->key + i / 2) >> (i % 2 ? 32 : 0);
        const float unit = (float)(bits & 0xffffffu) * 0x1p-23f - 1.0f; /* [-1, 1) */
        d->numbers[i] = d->middle + unit * d->half_width;
    }
}

void weights_draw(const struct weight_drawing *of, float *numbers, size_t n)
{
    struct drawing drawing = {
        .key = of->key, .half_width = (float)(of->deviation * sqrt(3)), .numbers = numbers};
    parallel_for(of->n_threads, n, DRAWS_AT_LEAST, draw, &drawing);
}

static bool is_norm(enum weight_role role)
{
    return role == WEIGHT_NORM_IN || role == WEIGHT_NORM_MLP || role == WEIGHT_NORM_END ||
           role == WEIGHT_Q_NORM || role == WEIGHT_K_NORM;
}

static double deviation_of(const struct weight *weight)
{
    if (weight->role == WEIGHT_EMBEDDING)
        return 1;
    return weight->n_columns ? 1 / sqrt((double)weight->n_columns) : 0.1;
}

static void fill_randomly(const struct weight_source *source, const struct weight *weight,
                          float *numbers)
{
    struct drawing drawing = {
        .key = ifl_draw(source->seed, IFL_DRAW_WEIGHT, (uint64_t)weight->role,
                        (uint64_t)weight->layer),
        .middle = is_norm(weight->role),
        .half_width = (float)(deviation_of(weight) * sqrt(3)),
        .numbers = numbers,
    };
    parallel_for(source->n_threads, weight->n_numbers, DRAWS_AT_LEAST, draw, &drawing);
}

/* ---- checkpoints ---- */

static void note(const struct weight_source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void note(const struct weight_source *source, const char *format, ...)
{
    char text[768];
    va_list args;
    if (!source->notes.say)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    source->notes.say(source->notes.context, text);
}

int weights_settle_tie(struct weight_source *source, struct ifl_engine_model *model,
                       struct ifl_error *error)
{
    const struct checkpoint *checkpoint = source->checkpoint;
    const char *embedding = roles[WEIGHT_EMBEDDING].name, *head = roles[WEIGHT_HEAD].name;
    if (!checkpoint || !model->tied_embeddings || !checkpoint_has(checkpoint, head))
        return 0;
    source->embedding_is_head = !checkpoint_has(checkpoint, embedding);
    const int equal =
        source->embedding_is_head ? 1 : checkpoint_equal(checkpoint, embedding, head, error);
    if (equal < 0)
        return equal;
    model->tied_embeddings = equal;
    if (!equal)
        note(source,
             "%s: tie_word_embeddings is true, but %s differs from %s: it is used as it is, as "
             "transformers 5 does",
             checkpoint->dir, head, embedding);
    return 0;
}

/* Counts numbers that are NaN, infinite, or round to infinity because they exceed `greatest`. */
static size_t count_beyond(const float *numbers, size_t n_numbers, float greatest)
{
    size_t n = 0;
    for (size_t i = 0; i < n_numbers; i++)
        n += !(fabsf(numbers[i]) <= greatest);
    return n;
}

static void look_at(const struct weight_source *source, const struct weight *weight,
                    const float *numbers)
{
    const float greatest = source->greatest > 0 ? (float)source->greatest : FLT_MAX;
    const size_t n_odd = count_beyond(numbers, weight->n_numbers, greatest);
    size_t n_nan = 0;
    for (size_t i = 0; n_odd > 0 && i < weight->n_numbers; i++)
        n_nan += isnan(numbers[i]) != 0;
    if (n_odd > 0)
        note(source,
             "%s: tensor %s: of %zu numbers %zu are NaN and %zu infinite or beyond the engine's "
             "%g: what it computes means nothing",
             source->checkpoint->dir, weight->name, weight->n_numbers, n_nan, n_odd - n_nan,
             (double)greatest);
}

int weight_fill(const struct weight_source *source, const struct weight *weight, float *numbers,
                struct ifl_error *error)
{
    const bool from_head = weight->role == WEIGHT_EMBEDDING && source->embedding_is_head;
    if (!source->checkpoint) {
        fill_randomly(source, weight, numbers);
        return 0;
    }
    const int rc =
        checkpoint_read(source->checkpoint, from_head ? roles[WEIGHT_HEAD].name : weight->name,
                        weight->n_rows, weight->n_columns, numbers, error);
    if (rc == 0)
        look_at(source, weight, numbers);
    return rc;
}
