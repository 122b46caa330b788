/* Weights and angles on their way to the device: narrowed to 16 bits, heads widened.
 *
 * A head of d dims lies in `width` of them: dim i of its lower half at i, of its upper half at
 * width / 2 + i - d / 2, zeros elsewhere. Zero rows of Q, K and V and zero columns of the output
 * projection change no product. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "inflight/minmax.h"
#include "parallel.h"
#include "rope.h"
#include "simt/half.h"

enum {
    STAGING_ELEMENTS = 16 << 20,
    NARROWED_AT_LEAST = 1 << 16, /* elements: fewer are not worth a thread */
    ALIGN_ELEMENTS = 128         /* 256 bytes: as fast as cuBLAS can */
};

/* ---- shapes as stored ---- */

struct stored {
    size_t n_rows, n_columns; /* columns 1: a vector, its numbers are rows */
    bool wide_rows, wide_columns;
    bool follows; /* right behind the weight before it: both are multiplied at once */
    float scale;
};

static struct stored stored_as(const struct cuda_engine *engine, const struct weight *w)
{
    const enum weight_role role = w->role;
    const size_t d = (size_t)engine->limits.model.d_head, width = (size_t)engine->head_width;
    struct stored s = {(size_t)w->n_rows, w->n_columns ? (size_t)w->n_columns : 1, .scale = 1};
    const bool is_qkv = role == WEIGHT_Q || role == WEIGHT_K || role == WEIGHT_V ||
                        role == WEIGHT_Q_BIAS || role == WEIGHT_K_BIAS || role == WEIGHT_V_BIAS;
    const bool is_norm = role == WEIGHT_Q_NORM || role == WEIGHT_K_NORM;
    s.wide_rows = is_qkv || is_norm;
    s.wide_columns = role == WEIGHT_OUT;
    s.follows = role == WEIGHT_K || role == WEIGHT_V || role == WEIGHT_K_BIAS ||
                role == WEIGHT_V_BIAS || role == WEIGHT_UP || role == WEIGHT_UP_BIAS;
    if (s.wide_rows)
        s.n_rows = s.n_rows / d * width;
    if (s.wide_columns)
        s.n_columns = s.n_columns / d * width;
    if (is_norm) /* the kernel's mean is over width numbers, as is its epsilon, see place_heads */
        s.scale = sqrtf((float)d / (float)width);
    return s;
}

static size_t place_after(size_t at, const struct stored *s)
{
    return s->follows ? at : (at + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
}

struct measuring {
    const struct cuda_engine *engine;
    size_t n_elements, largest;
};

static int measure_one(void *context, const struct weight *weight, struct ifl_error *error)
{
    struct measuring *measuring = context;
    const struct stored s = stored_as(measuring->engine, weight);
    (void)error;
    measuring->n_elements = place_after(measuring->n_elements, &s) + s.n_rows * s.n_columns;
    if (weight->n_numbers > measuring->largest)
        measuring->largest = weight->n_numbers;
    return 0;
}

static struct measuring measure(const struct cuda_engine *engine)
{
    struct measuring measuring = {engine, 0, 0};
    struct ifl_error error;
    weights_for_each(&engine->limits.model, measure_one, &measuring, &error);
    return measuring;
}

size_t cuda_weights_bytes(const struct cuda_engine *engine)
{
    return measure(engine).n_elements * sizeof(uint16_t);
}

/* ---- narrowing ---- */

static uint16_t narrow(enum element element, float number)
{
    return element == ELEMENT_BF16 ? half_to_bf16(number) : half_to_fp16(number);
}

/* The index in the checkpoint of stored index i of a run of heads; -1 for padding. */
static int64_t source_of(const struct cuda_engine *engine, size_t i)
{
    const size_t d = (size_t)engine->limits.model.d_head, width = (size_t)engine->head_width;
    const size_t head = i / width, dim = i % width % (width / 2), upper = i % width / (width / 2);
    return dim < d / 2 ? (int64_t)(head * d + upper * (d / 2) + dim) : -1;
}

static void write_row(const struct cuda_engine *engine, const struct stored *s, const float *from,
                      uint16_t *to)
{
    for (size_t c = 0; c < s->n_columns; c++) {
        const int64_t source = s->wide_columns ? source_of(engine, c) : (int64_t)c;
        to[c] = source < 0 ? 0 : narrow(engine->element, from[source] * s->scale);
    }
}

/* A stretch of a stored weight's rows. */
struct rows {
    const struct cuda_engine *engine;
    const struct stored *s;
    const float *numbers; /* of the whole weight, as read */
    size_t n_source_columns, first;
    uint16_t *to; /* where row `first` goes */
};

/* Rows [at, at + n) of the stretch. */
static void write_rows(void *context, size_t at, size_t n)
{
    const struct rows *rows = context;
    const struct stored *s = rows->s;
    for (size_t i = at; i < at + n; i++) {
        const size_t r = rows->first + i;
        const int64_t source = s->wide_rows ? source_of(rows->engine, r) : (int64_t)r;
        uint16_t *to = rows->to + i * s->n_columns;
        if (source < 0)
            memset(to, 0, s->n_columns * sizeof *to);
        else
            write_row(rows->engine, s, rows->numbers + (size_t)source * rows->n_source_columns, to);
    }
}

/* ---- loading ---- */

struct loading {
    struct cuda_engine *engine;
    const struct weight_source *source;
    float *numbers;    /* the largest weight's, as read */
    uint16_t *staging; /* at least a row of any */
    size_t staging_elements, at;
};

static int send(struct loading *loading, const struct weight *weight, const struct stored *s,
                struct ifl_error *error)
{
    const size_t rows_at_once = loading->staging_elements / s->n_columns;
    const size_t rows_a_thread = NARROWED_AT_LEAST / s->n_columns + 1;
    char *to = loading->engine->weights + loading->at * sizeof *loading->staging;
    struct rows rows = {.engine = loading->engine,
                        .s = s,
                        .numbers = loading->numbers,
                        .n_source_columns = weight->n_columns ? (size_t)weight->n_columns : 1,
                        .to = loading->staging};
    while (rows.first < s->n_rows) {
        const size_t left = s->n_rows - rows.first, n = ifl_min(left, rows_at_once);
        const size_t n_bytes = n * s->n_columns * sizeof *loading->staging;
        parallel_for(loading->engine->limits.n_threads, n, rows_a_thread, write_rows, &rows);
        TRY(cuda_send(loading->engine, to, loading->staging, n_bytes, error));
        to += n_bytes;
        rows.first += n;
    }
    return 0;
}

static int load_one(void *context, const struct weight *weight, struct ifl_error *error)
{
    struct loading *loading = context;
    struct cuda_engine *engine = loading->engine;
    const volatile sig_atomic_t *stop = engine->limits.stop;
    const struct stored s = stored_as(engine, weight);
    if (stop && *stop)
        return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
    TRY(weight_fill(loading->source, weight, loading->numbers, error));
    loading->at = place_after(loading->at, &s);
    engine->at[weight->layer][weight->role] =
        engine->weights + loading->at * sizeof *loading->staging;
    TRY(send(loading, weight, &s, error));
    loading->at += s.n_rows * s.n_columns;
    return 0;
}

int cuda_load_weights(struct cuda_engine *engine, const struct weight_source *source,
                      struct ifl_error *error)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    const size_t widest =
        (size_t)m->n_q_heads * (size_t)engine->head_width + (size_t)m->d_model + (size_t)m->d_ffn;
    struct loading loading = {
        .engine = engine,
        .source = source,
        .staging_elements = ifl_max(widest, STAGING_ELEMENTS),
    };
    loading.numbers = malloc(measure(engine).largest * sizeof *loading.numbers);
    loading.staging = malloc(loading.staging_elements * sizeof *loading.staging);
    const int rc = loading.numbers && loading.staging
                       ? weights_for_each(m, load_one, &loading, error)
                       : ifl_fail_nomem(error);
    free(loading.numbers);
    free(loading.staging);
    return rc;
}

/* ---- angles ---- */

static void place_angles(const struct cuda_engine *engine, const float *cosines, const float *sines,
                         float *angles)
{
    const size_t half = (size_t)engine->limits.model.d_head / 2;
    const size_t wide = (size_t)engine->head_width / 2;
    for (size_t p = 0; p < (size_t)engine->limits.max_tokens; p++, angles += 2 * wide)
        for (size_t i = 0; i < wide; i++) {
            angles[i] = i < half ? cosines[p * half + i] : 1;
            angles[wide + i] = i < half ? sines[p * half + i] : 0;
        }
}

static int send_angles(struct cuda_engine *engine, float *angles, float *cosines, float *sines,
                       struct ifl_error *error)
{
    const size_t n = (size_t)engine->limits.max_tokens * (size_t)engine->head_width;
    if (!angles || !cosines || !sines)
        return ifl_fail_nomem(error);
    rope_table(&engine->architecture, engine->limits.max_tokens, cosines, sines);
    place_angles(engine, cosines, sines, angles);
    return cuda_send(engine, engine->angles, angles, n * sizeof *angles, error);
}

int cuda_load_angles(struct cuda_engine *engine, struct ifl_error *error)
{
    const size_t n_tokens = (size_t)engine->limits.max_tokens;
    const size_t half = (size_t)engine->limits.model.d_head / 2;
    float *angles = malloc(n_tokens * (size_t)engine->head_width * sizeof *angles);
    float *cosines = malloc(n_tokens * half * sizeof *cosines);
    float *sines = malloc(n_tokens * half * sizeof *sines);
    const int rc = send_angles(engine, angles, cosines, sines, error);
    free(angles);
    free(cosines);
    free(sines);
    return rc;
}
