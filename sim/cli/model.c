/* inflight model: a model's shapes, its memory, and its speed on a GPU. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/model_files.h"
#include "cli/usage.h"
#include "cost/compute_optimal.h"
#include "cost/cost.h"

static const double mib = 1024.0 * 1024, gib = 1024.0 * 1024 * 1024;

/* ---- the model by itself ---- */

static void warn_of_fp8(const struct portrait *portrait)
{
    const char *warning = cost_roofline_warning(&portrait->model, &portrait->platform.hardware);
    if (warning)
        fprintf(stderr, "note: %s\n", warning);
}

static void print_sizes(const struct portrait *portrait)
{
    const struct portrait_options *options = &portrait->options;
    const char *of_rank = options->tensor_parallel > 1 ? " a rank" : "";
    printf("%s on %d x %s\n", portrait->model.name, options->tensor_parallel,
           portrait->platform.hardware.name);
    if (portrait->model.about[0])
        printf("  %s\n", portrait->model.about);
    if (portrait->platform.hardware.assumed[0])
        printf("  assumed, not measured: %s\n", portrait->platform.hardware.assumed);
    if (portrait->model.window_layers > 0)
        printf("  %s of %d tokens in %d of %d layers\n",
               portrait->model.chunked ? "chunks" : "a window", portrait->model.window_tokens,
               portrait->model.window_layers, portrait->model.layers);
    if (portrait->model.state_layers > 0)
        printf("  a state in place of K/V in %d of %d layers\n", portrait->model.state_layers,
               portrait->model.layers);
    if (portrait->model.bare_layers > 0)
        printf("  no MLP in %d of %d layers\n", portrait->model.bare_layers,
               portrait->model.layers);
    printf("\n  %-22s %12.4g\n", "parameters", (double)portrait->parameters);
    if (portrait->model.n_experts > 0)
        printf("  %-22s %12.4g\n", "of them active",
               (double)model_active_parameters(&portrait->model));
    printf("  %-22s %12.2f GiB%s\n", "weights", (double)portrait->weight_bytes / gib, of_rank);
    printf("  %-22s %12lld B%s\n", "KV of a token", (long long)portrait->kv_bytes_per_token,
           of_rank);
    if (portrait->grouped_bytes > 0)
        printf("  %-22s %12.2f MiB%s for %d tokens, %.2f MiB with serving.kv.windows: groups\n",
               "KV of a sequence", (double)portrait->held_bytes / mib, of_rank, options->length,
               (double)portrait->grouped_bytes / mib);
}

static void print_memory(const struct portrait *portrait)
{
    if (!portrait->fits) {
        printf("\n%s\n", portrait->misfit);
        return;
    }
    printf("\n");
    memory_print(&portrait->memory, stdout);
    printf("  %-22s %12lld sequences of %d tokens\n", "largest batch",
           (long long)portrait->largest_batch, portrait->options.length);
    printf("  %-22s %12lld tokens (the model ends at %d)\n", "longest context",
           (long long)portrait->longest_context, portrait->model.max_model_len);
}

/* ---- FLOPs and the roofline ---- */

static void print_parts(const struct portrait *portrait)
{
    const struct portrait_phase *prefill = &portrait->prefill, *decode = &portrait->decode;
    printf("\n  %-12s %14s %14s %14s %14s\n",
           portrait->options.tensor_parallel > 1 ? "of a rank" : "", "prefill GFLOP", "GB",
           "decode GFLOP", "GB");
    for (int i = 0; i < PASS_PARTS; i++)
        printf("  %-12s %14.2f %14.3f %14.3f %14.3f\n", prefill->parts[i].name,
               prefill->parts[i].flops / 1e9, prefill->parts[i].bytes / 1e9,
               decode->parts[i].flops / 1e9, decode->parts[i].bytes / 1e9);
    printf("  %-12s %14.2f %14.3f %14.3f %14.3f\n", "sum", prefill->sum.flops / 1e9,
           prefill->sum.bytes / 1e9, decode->sum.flops / 1e9, decode->sum.bytes / 1e9);
    printf("  forward with all logits %.4g FLOP, training step %.4g FLOP (the whole model)\n",
           portrait->forward_flops, portrait->training_flops);
}

static void print_phase(const char *name, const struct portrait_phase *phase)
{
    printf("  %-8s %10.2f %12.1f %10.1f %8s %11.3f %11.3f %11.1f", name, phase->intensity,
           phase->attainable_tflops, phase->tflops, phase->memory_bound ? "memory" : "compute",
           phase->bound_s * 1e3, phase->step_s * 1e3, phase->tok_per_s);
    if (phase->usd_per_million_tokens > 0)
        printf(" %10.3f", phase->usd_per_million_tokens);
    printf("\n");
}

static void print_roofline(const struct portrait *portrait)
{
    const struct portrait_options *options = &portrait->options;
    printf("\nbatch %d, %d tokens each; the ridge of a GPU lies at %.1f FLOP/B\n", options->batch,
           options->length, portrait->ridge_flops_per_byte);
    printf("  %-8s %10s %12s %10s %8s %11s %11s %11s%s\n", "", "FLOP/B", "roof TFLOP/s", "attained",
           "bound by", "at least ms", "step ms", "tok/s",
           options->usd_per_gpu_hour > 0 ? "   USD/Mtok" : "");
    print_phase("prefill", &portrait->prefill);
    print_phase("decode", &portrait->decode);
}

static void print_batches(const struct portrait *portrait)
{
    const bool prices = portrait->options.usd_per_gpu_hour > 0;
    printf("\ndecode against the batch\n  %8s %11s %11s%s\n", "batch", "step ms", "tok/s",
           prices ? "   USD/Mtok" : "");
    for (size_t i = 0; i < portrait->n_batches; i++) {
        const struct portrait_batch *of = &portrait->batches[i];
        printf("  %8d %11.3f %11.1f", of->batch, of->decode.step_s * 1e3, of->decode.tok_per_s);
        if (prices)
            printf(" %10.3f", of->decode.usd_per_million_tokens);
        printf("%s\n", of->fits ? "" : "  (does not fit)");
    }
}

static int show(const struct portrait_options *options, const char *out_dir)
{
    struct portrait portrait;
    struct ifl_error error;
    if (portrait_make(options, &portrait, &error) < 0)
        return cli_fail(&error);
    warn_of_fp8(&portrait);
    print_sizes(&portrait);
    print_memory(&portrait);
    print_parts(&portrait);
    print_roofline(&portrait);
    print_batches(&portrait);
    if (out_dir && model_files_write(&portrait, out_dir, &error) < 0)
        return cli_fail(&error);
    return 0;
}

/* ---- a training budget ---- */

static int show_compute_optimal(double flops)
{
    struct compute_optimal optimal;
    struct ifl_error error;
    if (compute_optimal_find(flops, &optimal, &error) < 0)
        return cli_fail(&error);
    printf("%.4g FLOPs of training are best spent on %.4g parameters and %.4g tokens "
           "(%.1f a parameter): loss %.4f\n",
           optimal.flops, optimal.parameters, optimal.tokens, optimal.tokens / optimal.parameters,
           optimal.loss);
    return 0;
}

/* ---- the command ---- */

/* 0, or -1 after a line that names the right word. */
static int read_dtype(const char *word, enum model_dtype *dtype)
{
    static const char *const words[] = {"auto", "fp32", "fp16", "bf16",
                                        "fp8",  "int8", "int4", "nvfp4"}; /* as enum model_dtype */
    enum { N = sizeof words / sizeof *words };
    for (int i = 0; i < N; i++)
        if (strcmp(words[i], word) == 0) {
            *dtype = (enum model_dtype)i;
            return 0;
        }
    fprintf(stderr, "inflight model: --dtype is %s, ", word);
    cli_suggest(word, words, N);
    return -1;
}

struct request {
    struct portrait_options portrait;
    struct text_list names;
    long long tensor, batch, length, block;
    const char *out_dir, *dtype;
    double flops;
};

static int check_request(const struct request *request)
{
    if (cli_check_int32("model", "--tensor", request->tensor) < 0 ||
        cli_check_int32("model", "--batch", request->batch) < 0 ||
        cli_check_int32("model", "--length", request->length) < 0 ||
        cli_check_int32("model", "--block", request->block) < 0)
        return -1;
    if (request->batch < 1 || request->length < 1 || request->block < 1) {
        const char *option = request->batch < 1    ? "--batch"
                             : request->length < 1 ? "--length"
                                                   : "--block";
        fprintf(stderr, "inflight model: %s %lld: expected a whole number from 1 on\n", option,
                request->batch < 1    ? request->batch
                : request->length < 1 ? request->length
                                      : request->block);
        return -1;
    }
    const double utilization = request->portrait.utilization;
    if (!(utilization > 0 && utilization <= 1)) {
        fprintf(stderr, "inflight model: --utilization %g: expected a number above 0, at most 1\n",
                utilization);
        return -1;
    }
    if (request->portrait.usd_per_gpu_hour >= 0)
        return 0;
    fprintf(stderr, "inflight model: --price %g: expected a number from 0 on\n",
            request->portrait.usd_per_gpu_hour);
    return -1;
}

static int run_command(int argc, char **argv)
{
    struct request request = {.portrait = {.hardware = "a100-80gb-sxm", .utilization = 0.9},
                              .tensor = 1,
                              .batch = 1,
                              .length = 2048,
                              .block = 16,
                              .dtype = "auto"};
    struct portrait_options *portrait = &request.portrait;
    const struct text_list *names = &request.names;
    if (options_read(&command_model, &request, argc, argv, &request.names) < 0)
        return 2;
    if (names->n > 1 || (names->n == 0 && request.flops == 0))
        return usage_fail(&command_model);
    if (check_request(&request) < 0 || read_dtype(request.dtype, &portrait->dtype) < 0)
        return 2;
    portrait->model = names->of[0];
    portrait->tensor_parallel = (int32_t)request.tensor;
    portrait->batch = (int32_t)request.batch;
    portrait->length = (int32_t)request.length;
    portrait->block_tokens = (int32_t)request.block;
    int code = names->n ? show(portrait, request.out_dir) : 0;
    if (code == 0 && request.flops != 0)
        code = show_compute_optimal(request.flops);
    return code;
}

static const struct option_spec options[] = {
    {"--hardware", "-g", OPTION_TEXT, offsetof(struct request, portrait.hardware), "NAME",
     "hardware profile, see `inflight list hardware` (a100-80gb-sxm)", COMPLETE_HARDWARE},
    {"--tensor", "-t", OPTION_COUNT, offsetof(struct request, tensor), "N",
     "GPUs that share each layer (1)", COMPLETE_NOTHING},
    {"--batch", "-b", OPTION_COUNT, offsetof(struct request, batch), "N",
     "sequences of a decode step (1)", COMPLETE_NOTHING},
    {"--length", "-l", OPTION_COUNT, offsetof(struct request, length), "TOKENS",
     "context of each sequence (2048)", COMPLETE_NOTHING},
    {"--block", NULL, OPTION_COUNT, offsetof(struct request, block), "TOKENS",
     "size of a K/V block (16)", COMPLETE_NOTHING},
    {"--utilization", "-u", OPTION_REAL, offsetof(struct request, portrait.utilization), "FRAC",
     "fraction of the GPU memory for weights and K/V (0.9)", COMPLETE_NOTHING},
    {"--dtype", NULL, OPTION_TEXT, offsetof(struct request, dtype), "DTYPE",
     "data type of the weights: auto, fp32, fp16, bf16, fp8, int8, int4, nvfp4 (auto: the model's)",
     COMPLETE_NOTHING},
    {"--price", NULL, OPTION_REAL, offsetof(struct request, portrait.usd_per_gpu_hour), "USD",
     "price of a GPU hour", COMPLETE_NOTHING},
    {"--compute", NULL, OPTION_REAL, offsetof(struct request, flops), "FLOPS",
     "find the best model size and amount of data for this training budget; with a NAME or alone",
     COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_dir), "DIR",
     "folder for the tables as CSV", COMPLETE_FOLDER},
};

const struct command command_model = {
    .name = "model",
    .doc = "print a model's sizes, FLOPs, roofline and memory on a GPU",
    .arguments = "NAME|config.json",
    .example = "inflight model llama-3-8b --hardware h100-sxm --batch 32",
    .completion = COMPLETE_MODEL,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
