#include "cost/portrait.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/cost.h"
#include "inflight/minmax.h"
#include "inflight/time.h"

static double peak_flops_per_s(const struct portrait *portrait)
{
    return portrait->platform.hardware.gpu.peak_tflops * 1e12;
}

static double peak_bytes_per_s(const struct portrait *portrait)
{
    return portrait->platform.hardware.gpu.memory_gb_per_s * 1e9;
}

/* ---- a phase ---- */

static struct ifl_step_totals totals_of(const struct pass *pass)
{
    const int32_t n_seqs = (int32_t)pass->n_seqs, q = (int32_t)pass->new_tokens;
    const int64_t c = (int64_t)pass->context_tokens;
    struct ifl_step_totals totals = {.n_tokens = n_seqs * q, .n_sampled = n_seqs};
    if (pass->context_tokens > 0) {
        totals.n_decode_seqs = n_seqs;
        totals.decode_context = n_seqs * (c + q);
    } else {
        totals.n_prefill_tokens = n_seqs * q;
        totals.n_prefill_seqs = n_seqs;
        totals.prefill_q_q = (int64_t)n_seqs * q * q;
        totals.max_prefill_kv = q;
    }
    return totals;
}

static void hold_against_roof(const struct portrait *portrait, struct portrait_phase *phase)
{
    const double flops_per_s = peak_flops_per_s(portrait), bytes_per_s = peak_bytes_per_s(portrait);
    phase->intensity = phase->sum.flops / phase->sum.bytes;
    phase->memory_bound = phase->intensity < portrait->ridge_flops_per_byte;
    phase->attainable_tflops = fmin(flops_per_s, phase->intensity * bytes_per_s) / 1e12;
    phase->bound_s = fmax(phase->sum.flops / flops_per_s, phase->sum.bytes / bytes_per_s);
    phase->tflops = phase->sum.flops / phase->step_s / 1e12;
}

static void price(const struct portrait_options *options, struct portrait_phase *phase)
{
    const double usd_per_s = options->usd_per_gpu_hour * options->tensor_parallel / 3600;
    phase->usd_per_million_tokens = usd_per_s / phase->tok_per_s * 1e6;
}

static void show_phase(const struct portrait *portrait, struct cost *cost, const struct pass *pass,
                       struct portrait_phase *phase)
{
    const struct ifl_step_totals totals = totals_of(pass);
    pass_count(&portrait->model, portrait->options.tensor_parallel, pass, phase->parts);
    phase->sum = pass_sum(phase->parts);
    phase->step_s = ifl_s_from_ns(cost_step_ns(cost, &totals));
    phase->tok_per_s = totals.n_tokens / phase->step_s;
    hold_against_roof(portrait, phase);
    price(&portrait->options, phase);
}

static void show_training(struct portrait *portrait)
{
    const struct portrait_options *options = &portrait->options;
    const struct pass pass = {options->batch, options->length, 0, true};
    struct pass_part parts[PASS_PARTS];
    pass_count(&portrait->model, 1, &pass, parts);
    portrait->forward_flops = pass_sum(parts).flops;
    portrait->training_flops = PASS_TRAINING_FACTOR * portrait->forward_flops;
}

/* A decode step: one new token for each sequence, which has `length` tokens with it. */
static struct pass decode_pass(const struct portrait_options *options, int32_t batch)
{
    const int32_t context = options->length > 1 ? options->length - 1 : 1;
    return (struct pass){batch, 1, context, false};
}

/* ---- memory ---- */

static void show_memory(struct portrait *portrait)
{
    const struct portrait_options *options = &portrait->options;
    struct ifl_error error;
    const struct memory_options memory = {options->tensor_parallel, options->block_tokens,
                                          options->utilization};
    const int code =
        memory_plan(&portrait->model, &portrait->platform, &memory, &portrait->memory, &error);
    portrait->fits = code == 0;
    if (code < 0) {
        memcpy(portrait->misfit, error.text, sizeof portrait->misfit);
        return;
    }
    const int64_t block = options->block_tokens;
    const int64_t pool_tokens = portrait->memory.n_blocks * block;
    const int64_t longest = portrait->model.max_model_len;
    portrait->largest_batch = portrait->memory.n_blocks / ((options->length + block - 1) / block);
    portrait->longest_context = ifl_min(pool_tokens, longest);
}

/* ---- decode against the batch ---- */

static void add_batch(struct portrait *portrait, struct cost *cost, int64_t batch)
{
    if (portrait->n_batches == PORTRAIT_MAX_BATCHES || batch > INT32_MAX / 2)
        return;
    struct portrait_batch *of = &portrait->batches[portrait->n_batches++];
    const struct pass pass = decode_pass(&portrait->options, (int32_t)batch);
    of->batch = (int32_t)batch;
    of->fits = portrait->fits && batch <= portrait->largest_batch;
    show_phase(portrait, cost, &pass, &of->decode);
}

/* Adds the powers of two up to the largest batch that fits, and that batch. */
static void show_batches(struct portrait *portrait, struct cost *cost)
{
    const int64_t wanted = portrait->options.batch;
    const int64_t last = portrait->largest_batch > 0 ? portrait->largest_batch : wanted;
    for (int64_t batch = 1; batch < last && batch <= 1 << 20; batch *= 2)
        add_batch(portrait, cost, batch);
    add_batch(portrait, cost, last);
}

/* ---- all of it ---- */

static int check(const struct portrait *portrait, struct ifl_error *error)
{
    const struct portrait_options *options = &portrait->options;
    if (options->batch < 1 || options->length < 1)
        return ifl_fail(error, IFL_E_INPUT, "batch %d and length %d, expected both from 1 on",
                        options->batch, options->length);
    if ((int64_t)options->batch * options->length > INT32_MAX)
        return ifl_fail(error, IFL_E_INPUT,
                        "batch %d x length %d tokens, expected at most 2^31 in a step",
                        options->batch, options->length);
    if (!(options->utilization > 0 && options->utilization <= 1))
        return ifl_fail(error, IFL_E_INPUT, "utilization %g, expected above 0 and up to 1",
                        options->utilization);
    return 0;
}

/* A block of a group has its share of the layers. */
static void show_sequence(struct portrait *portrait)
{
    const struct portrait_options *options = &portrait->options;
    const struct model *model = &portrait->model;
    const struct model_groups groups = model_kv_groups(model);
    const int64_t block = options->block_tokens;
    const int64_t n = (options->length + block - 1) / block;
    const int64_t most = model_group_blocks(model, options->tensor_parallel, options->block_tokens);
    const int64_t n_further = model->state_layers > 0 ? most : ifl_min(n, most);
    portrait->held_bytes = n * block * portrait->kv_bytes_per_token;
    if (groups.n_window > 0)
        portrait->grouped_bytes = (n + groups.n_window * n_further) *
                                  (block * portrait->kv_bytes_per_token * groups.layers /
                                   (model->layers - model->state_layers));
}

static void show_sizes(struct portrait *portrait)
{
    const int32_t t = portrait->options.tensor_parallel;
    portrait->parameters = model_parameters(&portrait->model);
    portrait->weight_bytes = model_weight_bytes(&portrait->model, t);
    portrait->kv_bytes_per_token = model_kv_bytes_per_token(&portrait->model, t);
    portrait->ridge_flops_per_byte = peak_flops_per_s(portrait) / peak_bytes_per_s(portrait);
}

int portrait_make(const struct portrait_options *options, struct portrait *portrait,
                  struct ifl_error *error)
{
    const struct parallel parallel = model_tensor_parallel(options->tensor_parallel);
    *portrait = (struct portrait){.options = *options};
    int code = check(portrait, error);
    if (!code)
        code = model_load(options->model, &portrait->model, error);
    if (!code)
        model_set_dtype(&portrait->model, options->dtype);
    if (!code)
        code = hardware_load(options->hardware, &portrait->platform, error);
    if (code)
        return code;
    struct cost *cost = cost_create_roofline(&portrait->model, &portrait->platform, &parallel,
                                             options->block_tokens, error);
    if (!cost)
        return error->code;
    const struct pass prefill = {options->batch, options->length, 0, false};
    const struct pass decode = decode_pass(options, options->batch);
    show_sizes(portrait);
    show_sequence(portrait);
    show_training(portrait);
    show_memory(portrait);
    show_phase(portrait, cost, &prefill, &portrait->prefill);
    show_phase(portrait, cost, &decode, &portrait->decode);
    show_batches(portrait, cost);
    cost_destroy(cost);
    return 0;
}
