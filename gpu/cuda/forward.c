/* The decoder's forward pass, enqueued layer by layer; decodes alone as a captured graph. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "engine.h"
#include "inflight/minmax.h"

struct forward {
    struct cuda_engine *engine;
    const struct pass_shape *shape;
    struct pass_arrays plan; /* on the device */
    float *logits;           /* on the host, or NULL */
    bool merges;             /* some decode's context is cut */
    bool votes;              /* some row votes */
};

static int multiply(const struct forward *f, const void *x, const void *w, const void *bias,
                    int32_t n, int32_t k, void *y, bool accumulates, struct ifl_error *error)
{
    const struct gemm_call call = {
        .x = x,
        .w = w,
        .bias = bias,
        .y = y,
        .n_rows = f->shape->n_rows,
        .n = n,
        .k = k,
        .accumulates = accumulates,
        .w_bytes = f->engine->layer_bytes,
        .n_w = f->engine->limits.model.n_layers,
    };
    return gemm_run(&f->engine->gemm, &call, f->engine->stream, error);
}

static int normalise(const struct forward *f, void *hidden, const void *weight, int32_t n_rows,
                     void *out, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct norm_args args = {
        .element = e->element,
        .out = out,
        .hidden = hidden,
        .weight = weight,
        .epsilon = (float)e->architecture.norm_epsilon,
        .n_rows = n_rows,
        .width = e->limits.model.d_model,
    };
    TRY_CUDA(norm_launch(&args, e->stream));
    return 0;
}

static int embed(const struct forward *f, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct gather_args args = {
        .element = e->element,
        .out = e->scratch.x,
        .table = e->at[0][WEIGHT_EMBEDDING],
        .index = f->plan.token_id,
        .n_rows = f->shape->n_rows,
        .n_table = e->limits.model.n_vocab,
        .width = e->limits.model.d_model,
    };
    TRY_CUDA(gather_launch(&args, e->stream));
    return 0;
}

/* ---- attention ---- */

static struct kv_layer layer_of(const struct cuda_engine *e, int32_t layer)
{
    const struct ifl_engine_model *m = &e->limits.model;
    const int32_t layer_rows = 2 * m->n_kv_heads * e->limits.block_tokens;
    const size_t row_bytes = (size_t)e->head_width * e->kv_element_bytes;
    return (struct kv_layer){
        .rows = e->kv + (size_t)layer * (size_t)layer_rows * row_bytes,
        .block_tokens = e->limits.block_tokens,
        .block_rows = m->n_layers * layer_rows,
        .n_kv_heads = m->n_kv_heads,
        .head_dim = e->head_width,
        .is_e4m3 = cuda_has_e4m3(e),
    };
}

/* The kernel's mean square is over the stored width, zeros included: epsilon and the weights are
 * scaled to match. */
static int place_heads(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const double shrunk = (double)e->limits.model.d_head / e->head_width;
    const struct rope_args args = {
        .element = e->element,
        .qkv = e->scratch.qkv,
        .bias = e->at[layer][WEIGHT_Q_BIAS],
        .q_norm = e->at[layer][WEIGHT_Q_NORM],
        .k_norm = e->at[layer][WEIGHT_K_NORM],
        .epsilon = (float)(e->architecture.norm_epsilon * shrunk),
        .angles = e->angles,
        .position = f->plan.position,
        .slot = f->plan.slot,
        .n_tokens = f->shape->n_rows,
        .n_heads = e->limits.model.n_q_heads,
        .kv = layer_of(e, layer),
    };
    TRY_CUDA(rope_launch(&args, e->stream));
    return 0;
}

static struct attn_args attention_of(const struct forward *f, int32_t layer)
{
    const struct cuda_engine *e = f->engine;
    const struct ifl_engine_model *m = &e->limits.model;
    return (struct attn_args){
        .element = e->element,
        .out = e->scratch.attended,
        .q = e->scratch.qkv,
        .q_stride = (m->n_q_heads + 2 * m->n_kv_heads) * e->head_width,
        .n_heads = m->n_q_heads,
        .scale = 1 / sqrtf((float)m->d_head),
        .kv = layer_of(e, layer),
        .window_tokens = e->architecture.window_tokens,
        .kv_len = f->plan.kv_len,
        .block_indptr = f->plan.block_indptr,
        .block_id = f->plan.block_id,
    };
}

static int attend_decodes(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct attn_decode_args args = {
        .attn = attention_of(f, layer),
        .plan = f->plan.decode,
        .n_shares = e->pass_limits.n_shares,
        .parts = e->scratch.parts,
        .part_logsum = e->scratch.part_logsum,
    };
    if (f->shape->n_decodes == 0)
        return 0;
    TRY_CUDA(attn_decode_launch(&args, e->stream));
    if (f->merges)
        TRY_CUDA(attn_merge_launch(&args, e->stream));
    return 0;
}

/* Prefills stand behind the decodes in every array of sequences. */
static int attend_prefills(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    struct attn_prefill_args args = {
        .attn = attention_of(f, layer),
        .q_indptr = f->plan.q_indptr,
        .items = f->plan.items,
        .merges = f->plan.tile_merges,
        .n_items = f->shape->n_items,
        .n_merges = f->shape->n_tile_merges,
        .tile_rows = f->shape->tile_rows,
        .parts = f->engine->scratch.tile_parts,
        .part_logsum = f->engine->scratch.tile_logsum,
    };
    if (f->shape->n_prefills == 0)
        return 0;
    args.attn.kv_len += f->shape->n_decodes;
    args.attn.block_indptr += f->shape->n_decodes;
    TRY_CUDA(attn_prefill_launch(&args, f->engine->stream));
    if (args.n_merges > 0)
        TRY_CUDA(attn_prefill_merge_launch(&args, f->engine->stream));
    return 0;
}

static int project_qkv(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct ifl_engine_model *m = &e->limits.model;
    const int32_t width = (m->n_q_heads + 2 * m->n_kv_heads) * e->head_width;
    return multiply(f, e->scratch.normed, e->at[layer][WEIGHT_Q], NULL, width, m->d_model,
                    e->scratch.qkv, false, error);
}

static int project_out(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct ifl_engine_model *m = &e->limits.model;
    const void *const *w = e->at[layer];
    return multiply(f, e->scratch.attended, w[WEIGHT_OUT], w[WEIGHT_OUT_BIAS], m->d_model,
                    m->n_q_heads * e->head_width, e->scratch.x, true, error);
}

static int attention_part(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    const struct cuda_scratch *s = &f->engine->scratch;
    TRY(normalise(f, s->x, f->engine->at[layer][WEIGHT_NORM_IN], f->shape->n_rows, s->normed,
                  error));
    TRY(project_qkv(f, layer, error));
    TRY(place_heads(f, layer, error));
    TRY(attend_decodes(f, layer, error));
    TRY(attend_prefills(f, layer, error));
    if (f->votes) {
        const struct attn_args attn = attention_of(f, layer);
        TRY(cuda_vote(f->engine, &attn, layer, error));
    }
    return project_out(f, layer, error);
}

/* ---- MLP ---- */

static int activate(const struct forward *f, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct swiglu_args swiglu = {e->element, e->scratch.activated, e->scratch.gate_up,
                                       f->shape->n_rows, e->limits.model.d_ffn};
    TRY_CUDA(swiglu_launch(&swiglu, e->stream));
    return 0;
}

static int project_up(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct ifl_engine_model *m = &e->limits.model;
    const void *const *w = e->at[layer];
    return multiply(f, e->scratch.normed, w[WEIGHT_GATE], w[WEIGHT_GATE_BIAS], 2 * m->d_ffn,
                    m->d_model, e->scratch.gate_up, false, error);
}

static int project_down(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct ifl_engine_model *m = &e->limits.model;
    const void *const *w = e->at[layer];
    return multiply(f, e->scratch.activated, w[WEIGHT_DOWN], w[WEIGHT_DOWN_BIAS], m->d_model,
                    m->d_ffn, e->scratch.x, true, error);
}

static int mlp_part(const struct forward *f, int32_t layer, struct ifl_error *error)
{
    const struct cuda_scratch *s = &f->engine->scratch;
    TRY(normalise(f, s->x, f->engine->at[layer][WEIGHT_NORM_MLP], f->shape->n_rows, s->normed,
                  error));
    TRY(project_up(f, layer, error));
    TRY(activate(f, error));
    return project_down(f, layer, error);
}

/* ---- the next tokens ---- */

static int gather_rows(const struct forward *f, int32_t first, int32_t n, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct gather_args args = {
        .element = e->element,
        .out = e->scratch.last,
        .table = e->scratch.x,
        .index = f->plan.logit_row + first,
        .n_rows = n,
        .n_table = f->shape->n_rows,
        .width = e->limits.model.d_model,
    };
    TRY_CUDA(gather_launch(&args, e->stream));
    return normalise(f, e->scratch.last, e->at[0][WEIGHT_NORM_END], n, e->scratch.last_normed,
                     error);
}

static int multiply_head(const struct forward *f, int32_t n, struct ifl_error *error)
{
    struct cuda_engine *e = f->engine;
    const struct ifl_engine_model *m = &e->limits.model;
    const struct gemm_call call = {
        .x = e->scratch.last_normed,
        .w = e->at[0][m->tied_embeddings ? WEIGHT_EMBEDDING : WEIGHT_HEAD],
        .y = e->scratch.logits,
        .n_rows = n,
        .n = m->n_vocab,
        .k = m->d_model,
        .y_stride = e->logit_stride,
    };
    return gemm_run(&e->gemm, &call, e->stream, error);
}

/* Samples rows [first, first + n) of the rows with logits. */
static int sample(const struct forward *f, int32_t first, int32_t n, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const struct argmax_args args = {
        .token = e->scratch.sampled + first,
        .logits = e->scratch.logits,
        .n_rows = n,
        .n_vocab = e->limits.model.n_vocab,
        .stride = e->logit_stride,
        .part_keys = e->scratch.argmax_keys,
        .n_done = e->scratch.argmax_done,
    };
    TRY(gather_rows(f, first, n, error));
    TRY(multiply_head(f, n, error));
    TRY_CUDA(argmax_launch(&args, e->stream));
    return 0;
}

static int copy_logits(const struct forward *f, int32_t first, int32_t n, struct ifl_error *error)
{
    const struct cuda_engine *e = f->engine;
    const size_t row_bytes = (size_t)e->limits.model.n_vocab * sizeof(float);
    if (!f->logits || n == 0)
        return 0;
    TRY_CUDA(cudaMemcpy2DAsync(f->logits + (size_t)first * (size_t)e->limits.model.n_vocab,
                               row_bytes, e->scratch.logits,
                               (size_t)e->logit_stride * sizeof(float), row_bytes, (size_t)n,
                               cudaMemcpyDeviceToHost, e->stream));
    return 0;
}

/* ---- the whole pass ---- */

static int layers(const struct forward *f, struct ifl_error *error)
{
    TRY(embed(f, error));
    for (int32_t layer = 0; layer < f->engine->limits.model.n_layers; layer++) {
        TRY(attention_part(f, layer, error));
        TRY(mlp_part(f, layer, error));
    }
    return 0;
}

static int run_eagerly(const struct forward *f, struct ifl_error *error)
{
    const int32_t n_rows = f->engine->pass.n_logit_rows;
    TRY(layers(f, error));
    for (int32_t i = 0, n; i < n_rows; i += n) {
        n = ifl_min(n_rows - i, CUDA_LOGIT_ROWS);
        TRY(sample(f, i, n, error));
        TRY(copy_logits(f, i, n, error));
    }
    return 0;
}

/* ---- graphs ---- */

static int enqueue_decodes(const struct forward *f, struct ifl_error *error)
{
    TRY(layers(f, error));
    return sample(f, 0, f->shape->n_logit_rows, error);
}

/* A failed capture is ended, too: a stream in capture mode cannot be used. */
static int capture(const struct forward *f, cudaGraphExec_t *graph, struct ifl_error *error)
{
    const cudaStream_t stream = f->engine->stream;
    cudaGraph_t captured = NULL;
    TRY_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    const int rc = enqueue_decodes(f, error);
    const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
    if (rc < 0 || ended) {
        if (captured)
            cudaGraphDestroy(captured);
        return rc < 0 ? rc : cuda_fail(error, "cudaStreamEndCapture", ended);
    }
    const cudaError_t failed = cudaGraphInstantiate(graph, captured, 0);
    cudaGraphDestroy(captured);
    if (failed) {
        *graph = NULL;
        return cuda_fail(error, "cudaGraphInstantiate", failed);
    }
    TRY_CUDA(cudaGraphUpload(*graph, stream));
    return 0;
}

/* gemm_rows' buckets in order: 1, 2, 4, 8, 16, ... */
static size_t bucket_of(int32_t n_rows)
{
    return n_rows <= 2 ? (size_t)n_rows - 1 : n_rows <= 4 ? 2 : (size_t)n_rows / 8 + 2;
}

static struct forward forward_of(struct cuda_engine *engine)
{
    struct forward f = {
        .engine = engine, .shape = &engine->pass.shape, .merges = engine->pass.n_merges > 0};
    pass_lay_out(&engine->pass_limits, f.shape, engine->plan, &f.plan);
    return f;
}

/* A graph cannot leave a kernel out, so there is one for either case. */
int cuda_capture(struct cuda_engine *engine, struct ifl_error *error)
{
    struct forward f = forward_of(engine);
    cudaGraphExec_t *graphs = engine->graphs[bucket_of(f.shape->n_rows)];
    for (int merges = 0; merges < 2; merges++) {
        f.merges = merges;
        TRY(capture(&f, &graphs[merges], error));
    }
    return 0;
}

int cuda_forward(struct cuda_engine *engine, float *logits, struct ifl_error *error)
{
    struct forward f = forward_of(engine);
    f.logits = logits;
    f.votes = engine->ballot.n_pieces > 0;
    if (!f.shape->is_graph)
        return run_eagerly(&f, error);
    const cudaGraphExec_t graph = engine->graphs[bucket_of(f.shape->n_rows)][f.merges];
    if (graph && !f.votes) /* a graph counts none */
        TRY_CUDA(cudaGraphLaunch(graph, engine->stream));
    else
        TRY(enqueue_decodes(&f, error));
    return copy_logits(&f, 0, engine->pass.n_logit_rows, error);
}

/* ---- before the first step ---- */

int cuda_warm_products(struct cuda_engine *engine, int32_t n_rows, struct ifl_error *error)
{
    const struct pass_shape shape = {.n_rows = n_rows};
    const struct forward f = {.engine = engine, .shape = &shape};
    TRY(project_qkv(&f, 0, error));
    TRY(project_out(&f, 0, error));
    TRY(project_up(&f, 0, error));
    TRY(project_down(&f, 0, error));
    return n_rows <= CUDA_LOGIT_ROWS ? multiply_head(&f, n_rows, error) : 0;
}

/* A tile of no rows that meets one token, of block 0, and its merge. */
static int warm_prefills(struct cuda_engine *engine, int32_t tile_rows, struct ifl_error *error)
{
    struct pass_shape *shape = &engine->pass.shape;
    struct pass_arrays plan;
    *shape = (struct pass_shape){
        .n_prefills = 1, .n_items = 1, .n_tile_merges = 1, .tile_rows = tile_rows};
    TRY(wait_event(engine->plan_copied, &engine->is_lost, error));
    const size_t head_bytes = pass_lay_out(&engine->pass_limits, shape, engine->plan_host, &plan);
    const size_t n_bytes = head_bytes + sizeof *plan.block_id;
    memset(engine->plan_host, 0, n_bytes);
    plan.items->end = 1;
    TRY_CUDA(cudaMemcpyAsync(engine->plan, engine->plan_host, n_bytes, cudaMemcpyHostToDevice,
                             engine->stream));
    TRY_CUDA(cudaEventRecord(engine->plan_copied, engine->stream));
    TRY(wait_stream(engine->stream, &engine->is_lost, error)); /* attention may overlap a copy */
    const struct forward f = forward_of(engine);
    return attend_prefills(&f, 0, error);
}

int cuda_warm_kernels(struct cuda_engine *engine, struct ifl_error *error)
{
    struct forward f = forward_of(engine);
    f.merges = true;
    TRY(enqueue_decodes(&f, error));
    TRY(warm_prefills(engine, ATTN_LOW_TILE, error));
    return warm_prefills(engine, ATTN_TALL_TILE, error);
}

/* ---- one operation, to be measured ---- */

int cuda_run_op(struct cuda_engine *engine, enum ifl_engine_op_kind kind, int32_t layer,
                struct ifl_error *error)
{
    const struct cuda_scratch *s = &engine->scratch;
    const struct forward f = forward_of(engine);
    switch (kind) {
    case IFL_OP_NORM:
        return normalise(&f, s->x, engine->at[layer][WEIGHT_NORM_IN], f.shape->n_rows, s->normed,
                         error);
    case IFL_OP_ROTARY:
        return place_heads(&f, layer, error);
    case IFL_OP_ACTIVATION:
        return activate(&f, error);
    case IFL_OP_ATTENTION:
        TRY(attend_decodes(&f, layer, error));
        return attend_prefills(&f, layer, error);
    default:
        return ifl_fail(error, IFL_E_DEVICE, "operation %d is none of a pass", (int)kind);
    }
}
