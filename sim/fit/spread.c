#include "fit/spread.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tree.h"
#include "cost/document.h"
#include "fit/forms.h"
#include "inflight/random.h"

/* The median of |x| for a standard normal x. */
static const double median_abs_normal = 0.67448975019608171;

/* Draws of a class: one for the factor, then one for each parameter. */
enum { CLASS_DRAWS = 1 + FORM_MAX_PARAMETERS };

/* Keys of draws: of classes up to FIT_STEP their numbers, then that of deployments and software,
 * which has SOFTWARE_DRAWS and more; later classes follow those. */
enum { DEPLOYMENT = FIT_STEP + 1, LATER_CLASSES = 100 };

static int key_of(enum fit_op op)
{
    return op <= FIT_STEP ? (int)op : LATER_CLASSES + (int)op;
}

static double normal(const struct spread *spread, int key, int i)
{
    const uint64_t index = (uint64_t)key * CLASS_DRAWS + (uint64_t)i;
    return gsl_cdf_ugaussian_Pinv(
        ifl_uniform(ifl_draw(spread->seed, IFL_DRAW_ENSEMBLE, spread->member, index)));
}

/* A lognormal factor around 1 with that median absolute error. */
static double class_factor(const struct spread *spread, enum fit_op op, double median)
{
    return exp(median / median_abs_normal * normal(spread, key_of(op), 0));
}

/* Reads an error of the fit; 0 if the profile does not have it. */
static int read_error(const struct node *map, const char *key, double *value,
                      struct ifl_error *error)
{
    const struct node *node = map ? tree_child(map, key) : NULL;
    char *end;
    *value = 0;
    if (!node)
        return 0;
    *value = node->kind == NODE_SCALAR ? strtod(node->text, &end) : -1;
    if (node->kind == NODE_SCALAR && end != node->text && !*end && *value >= 0 && isfinite(*value))
        return 0;
    return tree_fail(node, error, "%s is not an error of a fit, expected a number from 0 up", key);
}

/* ---- parameters ---- */

/* The standard error of a parameter, in its own unit. */
static int read_std_error(const struct node *errors, const struct form_parameter *of,
                          double *std_error, struct ifl_error *error)
{
    const bool in_us = of->us_name && errors && tree_child(errors, of->us_name);
    const int rc = read_error(errors, in_us ? of->us_name : of->name, std_error, error);
    *std_error /= in_us ? 1e6 : 1;
    return rc;
}

static int draw_parameters(const struct form *form, const struct node *fit,
                           const struct spread *spread, struct platform *platform,
                           struct ifl_error *error)
{
    const struct node *errors = tree_child(fit, "std_error");
    for (int i = 0; i < form->n_parameters; i++) {
        const struct form_parameter *of = &form->parameters[i];
        double *value = form_parameter_at(platform, of), std_error;
        if (read_std_error(errors, of, &std_error, error))
            return error->code;
        if (std_error == 0 || *value == 0)
            continue;
        const double drawn = *value + std_error * normal(spread, key_of(form->op), 1 + i);
        *value = fmin(fmax(drawn, of->low), of->high);
    }
    return 0;
}

/* ---- classes ---- */

/* Multiplies every time of the class by the factor: latencies and overheads by the factor itself,
 * rates and efficiencies by its inverse. */
static void slow_gemm(struct gemm_profile *gemm, double products, double weights)
{
    gemm->launch_us *= weights;
    gemm->memory_frac /= weights;
    gemm->compute_frac /= products;
}

static void slow_experts(struct experts_profile *experts, double products, double weights)
{
    experts->launch_us *= weights;
    experts->expert_us *= weights;
    experts->memory_frac /= weights;
    experts->compute_frac /= products;
}

static void slow_lines(struct lines_profile *lines, double latency, double rate)
{
    lines->latency_us *= latency;
    lines->bulk_latency_us *= latency;
    lines->gb_per_s /= rate;
    lines->bulk_gb_per_s /= rate;
}

static void slow_prefill(struct prefill_profile *prefill, double factor)
{
    prefill->launch_us *= factor;
    prefill->compute_frac /= factor;
    prefill->head_us *= factor;
}

/* Decoding beside a prefill has no fit of its own and shares the factor. */
static void slow_decode(struct hardware *hardware, double factor)
{
    hardware->decode.launch_us *= factor;
    hardware->decode.head_us *= factor;
    hardware->decode.memory_frac /= factor;
    hardware->decode.split_us *= factor;
    hardware->decode.stream_gb_per_s /= factor;
    hardware->decode_mixed.head_us *= factor;
    hardware->decode_mixed.memory_frac /= factor;
}

static void slow_sparse(struct sparse_profile *sparse, double factor)
{
    sparse->layer_us *= factor;
    sparse->decode_us *= factor;
    sparse->token_us *= factor;
    sparse->prompt_us *= factor;
    sparse->memory_frac /= factor;
    sparse->compute_frac /= factor;
    sparse->index_frac /= factor;
}

static void slow_latent(struct latent_profile *latent, double factor)
{
    latent->layer_us *= factor;
    latent->token_us *= factor;
    latent->decode_us *= factor;
}

static void slow_delta(struct delta_profile *delta, double factor)
{
    delta->launch_us *= factor;
    delta->chain_us *= factor;
    delta->decode_us *= factor;
    delta->memory_frac /= factor;
}

static void slow_copies(struct hardware *hardware, enum fit_op op, double factor)
{
    if (op == FIT_ELEMENTWISE) {
        hardware->elementwise.launch_us *= factor;
        hardware->elementwise.memory_frac /= factor;
    } else if (op == FIT_SEND_RECV) {
        hardware->send_recv.latency_us *= factor;
        hardware->send_recv.gb_per_s /= factor;
    } else if (op == FIT_BLOCK_COPY) {
        hardware->block_copy.launch_us *= factor;
        hardware->block_copy.memory_frac /= factor;
    } else if (op == FIT_SWAP_OUT || op == FIT_SWAP_IN) {
        slow_lines(op == FIT_SWAP_OUT ? &hardware->swap_out : &hardware->swap_in, factor, factor);
    }
}

static void slow(struct hardware *hardware, enum fit_op op, double factor)
{
    if (op == FIT_GEMM)
        slow_gemm(&hardware->gemm, factor, factor);
    else if (op == FIT_GEMM_FP8)
        slow_gemm(&hardware->gemm_fp8, factor, factor);
    else if (op == FIT_EXPERTS)
        slow_experts(&hardware->experts, factor, factor);
    else if (op == FIT_EXPERTS_FP8)
        slow_experts(&hardware->experts_fp8, factor, factor);
    else if (op == FIT_EXPERTS_MXFP4)
        slow_experts(&hardware->experts_mxfp4, factor, factor);
    else if (op == FIT_GEMM_NVFP4)
        slow_gemm(&hardware->gemm_nvfp4, factor, factor);
    else if (op == FIT_EXPERTS_NVFP4)
        slow_experts(&hardware->experts_nvfp4, factor, factor);
    else if (op == FIT_DELTA)
        slow_delta(&hardware->delta, factor);
    else if (op == FIT_LATENT)
        slow_latent(&hardware->latent, factor);
    else if (op == FIT_SPARSE)
        slow_sparse(&hardware->sparse, factor);
    else if (op == FIT_PREFILL)
        slow_prefill(&hardware->prefill, factor);
    else if (op == FIT_DECODE)
        slow_decode(hardware, factor);
    else if (op >= FIT_ALLREDUCE_2 && op <= FIT_ALLREDUCE_8)
        slow_lines(&hardware->allreduce[op - FIT_ALLREDUCE_2], factor, factor);
    else if (op >= FIT_ALLREDUCE_2_EAGER && op <= FIT_ALLREDUCE_8_EAGER)
        slow_lines(&hardware->allreduce_eager[op - FIT_ALLREDUCE_2_EAGER], factor, factor);
    else
        slow_copies(hardware, op, factor);
}

static int draw_class(const struct form *form, const struct node *fit, const struct spread *spread,
                      struct platform *platform, struct ifl_error *error)
{
    double median, of_shapes;
    if (draw_parameters(form, fit, spread, platform, error) ||
        read_error(fit, "held_out_median", &median, error) ||
        read_error(fit, "held_out_shape_median", &of_shapes, error))
        return error->code;
    if (of_shapes > 0)
        median = of_shapes;
    if (median > 0)
        slow(&platform->hardware, form->op, class_factor(spread, form->op, median));
    return 0;
}

static int draw_all(const struct node *root, const struct spread *spread, struct platform *platform,
                    struct ifl_error *error)
{
    const struct node *fits = tree_child(root, "fit");
    if (!fits && platform->deployment.n_intervals > 0)
        return 0;
    if (!fits || fits->kind != NODE_MAP || fits->n == 0)
        return tree_fail(root, error,
                         "no errors of a fit, expected a profile that inflight fit "
                         "wrote where cost.ensemble asks for draws");
    int rc = 0;
    for (int op = FIT_GEMM; rc == 0 && op < FIT_OPS; op++) {
        const struct form *form = form_of((enum fit_op)op);
        const struct node *fit = form ? tree_child(fits, form->section) : NULL;
        if (fit && fit->kind == NODE_MAP)
            rc = draw_class(form, fit, spread, platform, error);
    }
    return rc;
}

/* ---- kernels of other software ---- */

/* Medians of |log(measured / predicted)| over profiles and tables of other software for the same
 * GPU: configs/hardware/compare-software prints them again. Software moves the compute rate of
 * products more than that at which weights are read, and latencies between GPUs more than rates. */
static const struct {
    double products, weights, prefill, decode, latency, rate;
} software = {0.091, 0.026, 0.209, 0.157, 0.256, 0.021};

enum { SOFTWARE_DRAWS = 1024 }; /* behind the indexes of all numbers of deployments */

static double software_factor(const struct spread *spread, int i, double median)
{
    return exp(median / median_abs_normal * normal(spread, DEPLOYMENT, SOFTWARE_DRAWS + i));
}

static void draw_software(const struct spread *spread, struct hardware *hardware)
{
    const double products = software_factor(spread, 0, software.products);
    const double weights = software_factor(spread, 1, software.weights);
    const double latency = software_factor(spread, 4, software.latency);
    const double rate = software_factor(spread, 5, software.rate);
    slow_gemm(&hardware->gemm, products, weights);
    slow_gemm(&hardware->gemm_fp8, products, weights);
    slow_experts(&hardware->experts, products, weights);
    slow_experts(&hardware->experts_fp8, products, weights);
    slow_experts(&hardware->experts_mxfp4, products, weights);
    slow_gemm(&hardware->gemm_nvfp4, products, weights);
    slow_experts(&hardware->experts_nvfp4, products, weights);
    slow_prefill(&hardware->prefill, software_factor(spread, 2, software.prefill));
    slow_decode(hardware, software_factor(spread, 3, software.decode));
    for (int i = 0; i < HARDWARE_ALLREDUCES; i++) {
        slow_lines(&hardware->allreduce[i], latency, rate);
        slow_lines(&hardware->allreduce_eager[i], latency, rate);
    }
}

/* The host has no class: where an engine's profile fits it, the fit is to whole passes. */
static void slow_host(struct host_times *host, double factor)
{
    host->layer_s *= factor;
    host->step_s *= factor;
    host->seq_s *= factor;
    host->floor_s *= factor;
    host->prompt_layer_s *= factor;
    host->prompt_floor_layer_s *= factor;
}

/* Indexes behind those of all classes; the first is that of the count of blocks. */
static double normal_of_deployment(const void *spread, int key)
{
    return normal(spread, DEPLOYMENT, 1 + key);
}

int spread_draw(const char *name, const struct spread *spread, struct platform *platform,
                struct ifl_error *error)
{
    struct document document;
    struct node *root = NULL;
    const struct deployment fitted = platform->deployment;
    int rc = document_find("hardware", name, &document, error);
    if (rc == 0)
        rc = tree_load(document.path, &root, error);
    if (rc == 0)
        rc = draw_all(root, spread, platform, error);
    if (rc == 0 && spread->other_software)
        draw_software(spread, &platform->hardware);
    if (rc == 0 && spread->host_error_frac > 0)
        slow_host(&platform->deployment.host,
                  class_factor(spread, FIT_HOST, spread->host_error_frac));
    if (rc == 0)
        platform->deployment.memory.drawn_sds = normal(spread, DEPLOYMENT, 0);
    if (rc == 0)
        deployment_draw(&fitted, normal_of_deployment, spread, &platform->deployment);
    tree_free(root);
    return rc;
}
