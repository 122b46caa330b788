/* Layers with a state by the rules of model.h beside the gated delta rule and Mamba-2: their sizes
 * as vLLM and transformers have them, and what their steps cost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost/pass.h"
#include "cost/roofline_state.h"

#include "steps.h"

static struct model load_type(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "tests/cost/data/huggingface/%s.json", name);
    return load_model(path);
}

/* ---- sizes ---- */

/* The shapes of a layer's state in vLLM (model_executor/layers/mamba/mamba_utils.py), in bfloat16
 * but for the states of Kimi Delta Attention, which have 32 bits; layers with K/V, and groups with
 * states that have as many layers or fewer. */
Test(state_rules, states_are_as_in_vllm)
{
    static const struct {
        const char *name;
        int64_t bytes;
        int32_t layers, n_groups;
    } of[] = {
        {"lfm2-1.2b", 2048 * 2 * 2, 6, 2},
        {"lfm2-8b-a1b", 2048 * 2 * 2, 6, 3},
        {"minimax-text-01", 64 * 128 * 128 * 2, 10, 7},
        {"jamba-v0.1", 8192 * 16 * 2 + 8192 * 3 * 2, 4, 7},
        {"kimi-linear-48b-a3b", 32 * 128 * 128 * 4 + 3 * 4096 * 3 * 2, 7, 3},
        {"falcon-h1-0.5b", 24 * 64 * 128 * 2 + (1536 + 2 * 128) * 3 * 2, 36, 1},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const struct model model = load_type(of[i].name);
        const struct model_groups groups = model_kv_groups(&model);
        cr_expect_eq(model_state_bytes(&model, 1), of[i].bytes, "%s: %lld", of[i].name,
                     (long long)model_state_bytes(&model, 1));
        cr_expect(groups.layers == of[i].layers && groups.n_window == of[i].n_groups, "%s: %d, %d",
                  of[i].name, groups.layers, groups.n_window);
    }
}

/* Ranks share heads and channels evenly; B and C of Mamba are copied. */
Test(state_rules, ranks_share_states)
{
    static const char *const names[] = {"lfm2-1.2b", "minimax-text-01", "jamba-v0.1",
                                        "kimi-linear-48b-a3b"};
    struct ifl_error error;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct model model = load_type(names[i]);
        cr_expect_eq(model_check_parallel(&model, 4, &error), 0, "%s", error.text);
        cr_expect_eq(4 * model_state_bytes(&model, 4), model_state_bytes(&model, 1), "%s",
                     names[i]);
    }
    const struct model falcon = load_type("falcon-h1-0.5b");
    cr_expect_eq(model_state_bytes(&falcon, 2), 12 * 64 * 128 * 2 + (1536 / 2 + 2 * 128) * 3 * 2);
}

/* The products of a pass over a prompt are those of the parameters that a token is multiplied with:
 * 2 FLOPs each. Vectors and routers, which a pass leaves out, are below 1% of them. */
Test(state_rules, a_pass_multiplies_the_parameters)
{
    static const char *const names[] = {"lfm2-1.2b",           "lfm2-8b-a1b",    "jamba-v0.1",
                                        "jamba-reasoning-3b",  "falcon-h1-0.5b", "minimax-text-01",
                                        "kimi-linear-48b-a3b", "step3"};
    const struct pass pass = {.n_seqs = 1, .new_tokens = 4096, .all_logits = true};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct model model = load_type(names[i]);
        struct pass_part parts[PASS_PARTS];
        pass_count(&model, 1, &pass, parts);
        const double flops = pass_sum(parts).flops - parts[PASS_ATTENTION].flops;
        const double parameters = flops / 2 / pass.new_tokens;
        cr_expect_lt(fabs(parameters / (double)model_active_parameters(&model) - 1), 0.01,
                     "%s: %g, %lld active", names[i], parameters,
                     (long long)model_active_parameters(&model));
    }
}

/* ---- steps ---- */

static double step_of(const struct model *model, const struct ifl_step_totals *totals)
{
    return step_on("h100-sxm", model, totals);
}

/* What a longer context takes, in a step of decodes or in one prompt behind it. */
static double longer_s(const struct model *model, bool is_prompt)
{
    struct ifl_step_totals near = decodes(64, 1000), far = decodes(64, 9000);
    if (is_prompt) {
        near = (struct ifl_step_totals){.n_tokens = 512,
                                        .n_prefill_tokens = 512,
                                        .n_prefill_seqs = 1,
                                        .prefill_q_kv = 512 * 1024,
                                        .prefill_q_q = 512 * 512,
                                        .prefill_kv_64 = 1024,
                                        .max_prefill_kv = 1024 + 512,
                                        .n_sampled = 1};
        far = near;
        far.prefill_q_kv = 512 * 8192;
        far.prefill_kv_64 = 8192;
        far.max_prefill_kv = 8192 + 512;
    }
    return step_of(model, &far) - step_of(model, &near);
}

/* A longer context costs in layers that attend alone, also what latents of it are multiplied with:
 * its products, and its reads. */
Test(state_rules, a_context_costs_where_it_is_attended_to)
{
    static const char *const names[] = {"lfm2-1.2b", "jamba-v0.1", "kimi-linear-48b-a3b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int is_prompt = 0; is_prompt < 2; is_prompt++) {
            const struct model model = load_type(names[i]);
            struct model all = model;
            all.state_layers = 0;
            const double share = 1 - (double)model.state_layers / model.layers;
            const double ratio = longer_s(&model, is_prompt) / longer_s(&all, is_prompt);
            cr_expect_lt(fabs(ratio / share - 1), 1e-6, "%s: %g, expected %g", names[i], ratio,
                         share);
        }
}

/* States of 4 bytes an element in place of 2 move as much again: 0.855 of an A100's 2.039 TB/s. */
Test(state_rules, a_decode_reads_and_writes_its_states)
{
    static const struct {
        const char *name;
        double elements; /* of all layers */
    } of[] = {{"minimax-text-01", 70.0 * 64 * 128 * 128}, {"jamba-v0.1", 28.0 * 8192 * 16}};
    const struct ifl_step_totals step = decodes(64, 1000);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct model model = load_type(of[i].name);
        const double two = step_on("a100-80gb-sxm", &model, &step);
        model.state_bytes = 4;
        const double more = step_on("a100-80gb-sxm", &model, &step) - two;
        const double expected = 64 * 2 * 2 * of[i].elements / (0.855 * 2.039e12);
        cr_expect_lt(fabs(more / expected - 1), 1e-6, "%s: %g s, expected %g", of[i].name, more,
                     expected);
    }
}

/* A layer of a model on one GPU. */
static struct roofline_rank rank_of(const struct model *model)
{
    static struct platform platform; /* the rank points at it */
    const struct parallel parallel = model_tensor_parallel(1);
    struct roofline_rank rank;
    platform = load_platform("h100-sxm");
    roofline_rank_set(&rank, model, &platform, &parallel, 16);
    return rank;
}

/* Elements of 16 bits that the kernels of a prompt move of a token, by hand, and kernels:
 *     lightning  8192 queries, keys and values each: twice read, outputs written, read and written,
 *                and 32 bits four times for a state of 128 rows a chunk of 256; activation of all
 *                three, norm, gate
 *     mamba1     8192 inputs, steps, gates and outputs, 16 B and C; the convolution, norms
 *     conv       2048: two inputs and an output of each gate, the convolution */
Test(state_rules, prompts_go_by_their_bytes)
{
    static const struct {
        const char *name;
        int scans, arounds; /* kernels */
        double scan, around;
    } of[] = {
        {"minimax-text-01", 4, 3, 9 * 8192 + 2 * 4 * 8192 * 128.0 / 256, 11 * 8192},
        {"jamba-v0.1", 1, 4, 4 * 8192 + 2 * 16, 2 * 8192},
        {"lfm2-1.2b", 0, 3, 0, 8 * 2048},
    };
    const struct ifl_step_totals step = {
        .n_tokens = 4096, .n_prefill_tokens = 4096, .n_prefill_seqs = 1, .n_sampled = 1};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const struct model model = load_type(of[i].name);
        const struct roofline_rank rank = rank_of(&model);
        const double expected =
            elementwise_s(rank.hardware, of[i].scans, 4096 * 2 * of[i].scan) +
            elementwise_s(rank.hardware, of[i].arounds, 4096 * 2 * of[i].around);
        const double found = roofline_state_s(&rank, &step);
        cr_expect_lt(fabs(found / expected - 1), 1e-9, "%s: %g s, expected %g", of[i].name, found,
                     expected);
    }
}

/* Mamba-1 has four products, Kimi Delta Attention three, a short convolution two. */
Test(state_rules, products_around_a_state)
{
    static const struct {
        const char *name;
        double n_k[4][2];
    } of[] = {
        {"jamba-v0.1", {{16384, 4096}, {4096, 8192}, {256 + 32, 8192}, {8192, 256}}},
        {"kimi-linear-48b-a3b", {{3 * 4096 + 32 + 2 * 128, 2304}, {2304, 4096}, {8192, 128}}},
        {"lfm2-1.2b", {{3 * 2048, 2048}, {2048, 2048}}},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const struct model model = load_type(of[i].name);
        const struct roofline_rank rank = rank_of(&model);
        double expected = 0;
        for (int j = 0; j < 4 && of[i].n_k[j][0] > 0; j++)
            expected += gemm_s(rank.hardware, 64, of[i].n_k[j][0], of[i].n_k[j][1], 2);
        const double found = roofline_state_projections_s(&rank, 64);
        cr_expect_lt(fabs(found / expected - 1), 1e-9, "%s: %g s, expected %g", of[i].name, found,
                     expected);
    }
}

/* ---- contradictions ---- */

static void expect_refused(const struct model *model, const char *key)
{
    struct model copy = *model;
    struct ifl_error error;
    const char *guilty = model_complete(&copy, &error);
    cr_assert(guilty, "expected an error of %s", key);
    cr_expect_str_eq(guilty, key, "%s", error.text);
}

Test(state_rules, widths_that_a_rule_has_not)
{
    struct model conv = load_type("lfm2-1.2b"), kda = load_type("kimi-linear-48b-a3b");
    struct model lightning = load_type("minimax-text-01"), mamba1 = load_type("jamba-v0.1");
    conv.state_k_heads = 1;
    expect_refused(&conv, "state_k_heads");
    kda.state_rank = 0;
    expect_refused(&kda, "state_layers");
    kda.state_rank = 128;
    kda.q_lora_rank = kda.index_heads = kda.index_head_dim = kda.index_topk = 64;
    expect_refused(&kda, "state_layers");
    lightning.conv_tokens = 4;
    expect_refused(&lightning, "conv_tokens");
    lightning.conv_tokens = 0;
    lightning.state_rank = 8;
    expect_refused(&lightning, "state_rank");
    mamba1.state_k_heads = 2;
    expect_refused(&mamba1, "state_k_heads");
    mamba1.state_layers = mamba1.state_k_heads = 0;
    expect_refused(&mamba1, "state_rule");
}

/* ---- files ---- */

#define SHAPE                                                                                      \
    ", \"hidden_size\": 64, \"num_hidden_layers\": 4, \"num_attention_heads\": 4,"                 \
    " \"num_key_value_heads\": 2, \"intermediate_size\": 96, \"vocab_size\": 100,"                 \
    " \"max_position_embeddings\": 64"
#define MOE SHAPE ", \"num_local_experts\": 4, \"num_experts_per_tok\": 2"

Test(state_rules, layers_that_a_file_does_not_name)
{
    expect_config_json_refused("{\"model_type\": \"lfm2\"" SHAPE "}", "layer_types is missing");
    expect_config_json_refused("{\"model_type\": \"lfm2\"" SHAPE ", \"full_attn_idxs\": [1, 1]}",
                               "the list of layers that attend names others, or one twice");
    expect_config_json_refused("{\"model_type\": \"lfm2\"" SHAPE ", \"full_attn_idxs\": [1, 4]}",
                               "the list of layers that attend names others, or one twice");
    expect_config_json_refused(
        "{\"model_type\": \"lfm2\"" SHAPE
        ", \"layer_types\": [\"conv\", \"conv\", \"full_attention\", \"linear_attention\"]}",
        "layer_types[3] is \"linear_attention\", expected full_attention or conv");
    expect_config_json_refused("{\"model_type\": \"minimax_m1\"" MOE
                               ", \"attn_type_list\": [0, 1]}",
                               "attn_type_list has not one kind for each layer");
    expect_config_json_refused("{\"model_type\": \"minimax_m1\"" MOE
                               ", \"attn_type_list\": [0, 0, 0, 0]}",
                               "state_layers is 4, expected fewer than the 4 layers");
    expect_config_json_refused("{\"model_type\": \"jamba\"" SHAPE ", \"expert_layer_period\": 2}",
                               "attn_layer_period is missing");
}

Test(state_rules, parts_that_are_not_modelled)
{
    expect_config_json_refused("{\"model_type\": \"lfm2\"" SHAPE
                               ", \"full_attn_idxs\": [1], \"conv_bias\": true}",
                               "conv_bias is true, expected false");
    expect_config_json_refused("{\"model_type\": \"lfm2\"" SHAPE
                               ", \"full_attn_idxs\": [1], \"block_ffn_dim_multiplier\": 1e300}",
                               "block_ffn_dim_multiplier is ");
    expect_config_json_refused("{\"model_type\": \"minimax_text_01\"" MOE
                               ", \"attn_type_list\": [0, 0, 0, 1],"
                               " \"shared_intermediate_size\": 64}",
                               "shared_intermediate_size is not 0");
    expect_config_json_refused("{\"model_type\": \"jamba\"" SHAPE
                               ", \"attn_layer_period\": 4, \"attn_layer_offset\": 1,"
                               " \"expert_layer_period\": 2, \"mamba_proj_bias\": true}",
                               "mamba_proj_bias is true");
    expect_config_json_refused(
        "{\"model_type\": \"falcon_h1\"" SHAPE
        ", \"mamba_n_heads\": 4, \"mamba_d_state\": 8, \"projectors_bias\": true}",
        "a bias of projections is true");
    expect_config_json_refused("{\"model_type\": \"step3_text\"" SHAPE
                               ", \"head_dim\": 16, \"share_q_dim\": 32, \"moe_num_experts\": 4,"
                               " \"moe_top_k\": 2, \"moe_intermediate_size\": 8,"
                               " \"share_expert_dim\": 8, \"max_position_embedding\": 64,"
                               " \"moe_layers_enum\": \"3,2\"}",
                               "moe_layers_enum is \"3,2\", expected numbers of layers");
}

/* What a file may leave out has the value of the configuration class: LFM2's MLP is two thirds of
 * its width, a factor and whole 256 columns; Jamba attends in the fifth of each eight layers. */
Test(state_rules, what_files_leave_out)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_config_json("{\"model_type\": \"lfm2\"" SHAPE ", \"full_attn_idxs\": [2],"
                                  " \"block_ff_dim\": 600, \"block_ffn_dim_multiplier\": 1.5}",
                                  &model, &error),
                 0, "%s", error.text);
    cr_expect(model.d_ffn == 768 && model.conv_tokens == 3 && model.tied_embeddings);
    cr_assert_eq(
        load_config_json("{\"model_type\": \"jamba\", \"hidden_size\": 64, \"vocab_size\": 100,"
                         " \"num_hidden_layers\": 8, \"num_attention_heads\": 4,"
                         " \"num_key_value_heads\": 2, \"intermediate_size\": 96,"
                         " \"max_position_embeddings\": 64, \"attn_layer_period\": 8,"
                         " \"expert_layer_period\": 2}",
                         &model, &error),
        0, "%s", error.text);
    cr_expect(model.state_layers == 7 && model.n_experts == 16 && model.first_dense_layers == 4);
    cr_expect(model.state_rank == 4 && model.state_k_dim == 16);
}

/* The share of a part that a checkpoint in fp8 leaves in 16 bits, by one name. */
static double plain(const char *type, const char *name, enum model_part part)
{
    char path[128], text[8192], list[256];
    struct model model;
    struct ifl_error error;
    snprintf(path, sizeof path, "tests/cost/data/huggingface/%s.json", type);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    const size_t n = fread(text, 1, sizeof text - sizeof list, file);
    fclose(file);
    text[n] = '\0';
    char *end = strrchr(text, '}');
    snprintf(
        list, sizeof list,
        ", \"quantization_config\": {\"quant_method\": \"fp8\", \"ignored_layers\": [\"%s\"]}}",
        name);
    memcpy(end, list, strlen(list) + 1);
    cr_assert_eq(load_config_json(text, &model, &error), 0, "%s", error.text);
    return model.plain_frac[part];
}

static void expect_plain(const char *type, const char *name, enum model_part part, double expected)
{
    const double found = plain(type, name, part);
    cr_expect_float_eq(found, expected, 1e-9, "%s, %s: %g, expected %g", type, name, found,
                       expected);
}

/* By hand, in columns times rows: LFM2's convolutions 3 x 1 in and 1 x 1 out, lightning attention
 * 3 and a gate in and 1 out, each as wide; Mamba-1's scan; one of Kimi's layers; Step-3's queries.
 */
Test(state_rules, modules_that_stay_in_16_bits)
{
    const double inner = 8192, d = 4096, scan = inner * (256 + 32);
    const double mamba1 = d * 2 * inner + scan + 256 * inner + inner * d;
    expect_plain("lfm2-1.2b", "conv", MODEL_PART_STATE, 1);
    expect_plain("lfm2-1.2b", "conv.out_proj", MODEL_PART_STATE, 0.25);
    expect_plain("lfm2-1.2b", "self_attn.out_proj", MODEL_PART_ATTENTION, 0.4);
    expect_plain("lfm2-8b-a1b", "model.layers.0.feed_forward", MODEL_PART_MLP, 0.5);
    expect_plain("lfm2-8b-a1b", "feed_forward.experts", MODEL_PART_EXPERTS, 1);
    expect_plain("minimax-text-01", "output_gate", MODEL_PART_STATE, 0.2);
    expect_plain("minimax-text-01", "output_gate", MODEL_PART_ATTENTION, 0);
    expect_plain("jamba-v0.1", "mamba.x_proj", MODEL_PART_STATE, scan / mamba1);
    expect_plain("jamba-v0.1", "model.layers.0.feed_forward", MODEL_PART_MLP, 1.0 / 16);
    expect_plain("jamba-v0.1", "model.layers.1.feed_forward", MODEL_PART_EXPERTS, 1.0 / 16);
    expect_plain("jamba-v0.1", "model.layers.4.self_attn", MODEL_PART_ATTENTION, 0.25);
    expect_plain("kimi-linear-48b-a3b", "model.layers.0.self_attn", MODEL_PART_STATE, 0.05);
    expect_plain("kimi-linear-48b-a3b", "model.layers.3.self_attn", MODEL_PART_ATTENTION, 1.0 / 7);
    expect_plain("step3", "share_expert", MODEL_PART_SHARED, 1);
    expect_plain("step3", "moe", MODEL_PART_EXPERTS, 1);
    expect_plain("step3", "wq", MODEL_PART_ATTENTION,
                 2048.0 * 16384 / (7168 * 2560.0 + 2048.0 * 16384 + 16384.0 * 7168));
    expect_plain("falcon-h1-0.5b", "mamba", MODEL_PART_STATE, 1);
    expect_plain("falcon-h1-0.5b", "mamba", MODEL_PART_ATTENTION, 0);
    expect_plain("falcon-h1-0.5b", "model.layers.35.feed_forward", MODEL_PART_MLP, 1.0 / 36);
}
