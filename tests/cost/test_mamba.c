/* Models with Mamba-2 in part of their layers: their sizes against what their owners and engines
 * say, and what their steps cost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "steps.h"

static const char nemotron_3[] =
    "{\"model_type\": \"nemotron_h\", \"hidden_size\": 2688, \"vocab_size\": 131072,"
    " \"num_hidden_layers\": 52, \"num_attention_heads\": 32, \"num_key_value_heads\": 2,"
    " \"head_dim\": 128, \"intermediate_size\": 1856, \"max_position_embeddings\": 262144,"
    " \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\","
    " \"hybrid_override_pattern\": \"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME\","
    " \"mamba_num_heads\": 64, \"mamba_head_dim\": 64, \"n_groups\": 8, \"ssm_state_size\": 128,"
    " \"conv_kernel\": 4, \"mamba_ssm_cache_dtype\": \"float32\", \"n_routed_experts\": 128,"
    " \"num_experts_per_tok\": 6, \"moe_intermediate_size\": 1856, \"n_shared_experts\": 1,"
    " \"moe_shared_expert_intermediate_size\": 3712}";

/* NVIDIA: 31.6 billion parameters, 3.2 of them active (Nemotron 3 Nano, technical report
 * 2025); 8.89 billion (the card of Nemotron Nano 9B v2). IBM: 32 and 9 billion (Granite 4.0 H
 * Small). */
Test(mamba, sizes_are_as_published)
{
    static const struct {
        const char *name;
        double all, active, within;
    } cards[] = {{"nemotron-3-nano-30b-a3b", 31.6e9, 3.2e9, 0.01},
                 {"nemotron-nano-9b-v2", 8.89e9, 0, 0.001},
                 {"granite-4.0-h-small", 32.2e9, 8.8e9, 0.01}};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        const struct model model = load_model(cards[i].name);
        const double all = (double)model_parameters(&model);
        cr_expect_lt(fabs(all / cards[i].all - 1), cards[i].within, "%s: %g", cards[i].name, all);
        if (cards[i].active > 0)
            cr_expect_lt(fabs((double)model_active_parameters(&model) / cards[i].active - 1),
                         cards[i].within, "%s", cards[i].name);
    }
}

/* By hand: 23 layers of Mamba-2 with 64 heads of 64, 8 groups of a state of 128, 6 of attention
 * with 32 and 2 heads of 128, 23 of 128 experts and a shared one twice as wide, and a norm before
 * each. */
Test(mamba, nemotron_3_nano_to_the_parameter)
{
    const struct model model = load_model("nemotron-3-nano-30b-a3b");
    const int64_t d = 2688, inside = 64 * 64, channels = inside + 2 * 8 * 128;
    const int64_t mamba =
        d * (inside + channels + 64) + inside * d + channels * 5 + 3 * 64 + inside;
    const int64_t attention = d * (32 + 2 * 2) * 128 + 32 * 128 * d;
    const int64_t experts = 2 * d * (128 * 1856 + 3712) + d * 128;
    cr_expect_eq(model_parameters(&model),
                 2 * 131072 * d + d + 23 * mamba + 6 * attention + 23 * experts + 52 * d);
}

/* A layer of experts of a latent: 512 of them, plain, a shared one of the hidden state, a router
 * that sees it, and the projections to the latent and back. */
static int64_t latent_experts(int64_t d, int64_t latent, int64_t d_ffn, int64_t shared)
{
    return 2 * latent * 512 * d_ffn + 2 * d * shared + 2 * d * latent + 512 * d;
}

/* A layer of Mamba-2 with heads of 64 and 8 groups of a state of 128, and one of attention with two
 * heads of keys and values, both without their norm. */
static int64_t mamba_layer(int64_t d, int64_t heads)
{
    const int64_t inside = heads * 64, channels = inside + 2 * 8 * 128;
    return d * (inside + channels + heads) + inside * d + channels * 5 + 3 * heads + inside;
}

static int64_t attention_layer(int64_t d, int64_t heads)
{
    return d * (heads + 2 * 2) * 128 + heads * 128 * d;
}

/* The config.json of nvidia's checkpoints, which ai-dynamo/aiconfigurator has in
 * src/aiconfigurator/model_configs. By hand: 40 layers of Mamba-2, 8 of attention, 40 of experts;
 * and 48, 12 and 48, of which only the list of words says how many there are. */
Test(mamba, nemotron_3_with_experts_of_a_latent)
{
    const struct model super = load_model(
                           "tests/cost/data/huggingface/nemotron-3-super-120b-a12b.json"),
                       ultra = load_model(
                           "tests/cost/data/huggingface/nemotron-3-ultra-550b-a55b.json");
    const int64_t vocab = 131072;
    int64_t d = 4096;
    const int64_t of_super = 2 * vocab * d + d + 40 * mamba_layer(d, 128) +
                             8 * attention_layer(d, 32) + 88 * d +
                             40 * latent_experts(d, 1024, 2688, 5376);
    cr_expect_eq(model_parameters(&super), of_super, "%lld", (long long)model_parameters(&super));
    cr_expect_lt(fabs((double)of_super / 120e9 - 1), 0.01);
    cr_expect_eq(model_kv_bytes_per_token(&super, 1), 2 * 8 * 2 * 128 * 2);
    struct model_linear linears[MODEL_LINEARS];
    model_layer_linears(&super, 2, linears);
    cr_expect(linears[MODEL_MLP_UP].n == 2688 / 2 && linears[MODEL_MLP_UP].k == 1024);
    cr_expect(linears[MODEL_MLP_DOWN].n == 1024 && linears[MODEL_MLP_DOWN].k == 2688 / 2);
    d = 8192;
    const int64_t of_ultra = 2 * vocab * d + d + 48 * mamba_layer(d, 256) +
                             12 * attention_layer(d, 64) + 108 * d +
                             48 * latent_experts(d, 2048, 5120, 10240);
    cr_expect_eq(model_parameters(&ultra), of_ultra, "%lld", (long long)model_parameters(&ultra));
    cr_expect_lt(fabs((double)of_ultra / 550e9 - 1), 0.01);
    cr_expect_lt(fabs((double)model_active_parameters(&ultra) / 55e9 - 1), 0.01);
    cr_expect_eq(model_kv_bytes_per_token(&ultra, 1), 2 * 12 * 2 * 128 * 2);
}

/* A server of vLLM says that the weights in bfloat16 take 58.93 GiB. */
Test(mamba, weights_are_as_a_log_says)
{
    const struct model model = load_model("nemotron-3-nano-30b-a3b");
    cr_expect_lt(fabs((double)model_weight_bytes(&model, 1) / 0x1p30 - 58.93), 0.15);
}

/* Tokens of a block of attention that is as large as a layer's state, rounded up to 16. */
static int32_t block_of(const struct model *model)
{
    return 16 * (int32_t)ceil(model_state_tokens(model, 1) / 16);
}

/* What vLLM says: 672 tokens for Nemotron Nano 9B v2 (issue 24280); 1072 for Nemotron 3 Nano with
 * states of 16 bits, and 2128 where K/V has 8 bits. */
Test(mamba, blocks_that_logs_name)
{
    struct model small = load_model("nemotron-nano-9b-v2"),
                 model = load_model("nemotron-3-nano-30b-a3b");
    cr_expect_eq(block_of(&small), 672);
    model.state_bytes = 2;
    cr_expect_eq(block_of(&model), 1072);
    model.kv_bytes = 1;
    cr_expect_eq(block_of(&model), 2128);
}

Test(mamba, config_json_of_nemotron)
{
    struct model theirs;
    struct ifl_error error;
    const struct model ours = load_model("nemotron-3-nano-30b-a3b");
    cr_assert_eq(load_config_json(nemotron_3, &theirs, &error), 0, "%s", error.text);
    cr_expect_eq(model_parameters(&theirs), model_parameters(&ours));
    cr_expect_eq(model_state_bytes(&theirs, 2), model_state_bytes(&ours, 2));
    cr_expect_eq(theirs.bare_layers, 6);
    cr_expect_eq(theirs.state_bytes, 4);
}

/* A list of words says the same as letters. */
Test(mamba, layers_by_their_words)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(
        load_config_json(
            "{\"model_type\": \"nemotron_h\", \"hidden_size\": 64, \"vocab_size\": 100,"
            " \"num_hidden_layers\": 5, \"num_attention_heads\": 2,"
            " \"num_key_value_heads\": 1, \"head_dim\": 32, \"intermediate_size\": 256,"
            " \"max_position_embeddings\": 64, \"mamba_num_heads\": 4,"
            " \"mamba_head_dim\": 16, \"n_groups\": 2, \"ssm_state_size\": 8,"
            " \"layers_block_type\": [\"mamba\", \"mlp\", \"attention\", \"mamba\", \"mlp\"]}",
            &model, &error),
        0, "%s", error.text);
    cr_expect(model.layers == 3 && model.state_layers == 2 && model.bare_layers == 1);
    cr_expect(model.mlp == MODEL_MLP_PLAIN && model.state_bytes == 2);
}

Test(mamba, config_json_of_granite_and_bamba)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(
        load_config_json("{\"model_type\": \"granitemoehybrid\", \"hidden_size\": 4096,"
                         " \"num_hidden_layers\": 4, \"num_attention_heads\": 32,"
                         " \"num_key_value_heads\": 8, \"num_local_experts\": 72,"
                         " \"num_experts_per_tok\": 10, \"shared_intermediate_size\": 1536,"
                         " \"intermediate_size\": 768, \"mamba_d_state\": 128, \"mamba_d_conv\": 4,"
                         " \"mamba_expand\": 2, \"mamba_n_heads\": 128, \"mamba_d_head\": 64,"
                         " \"mamba_n_groups\": 1, \"tie_word_embeddings\": true,"
                         " \"vocab_size\": 100352, \"max_position_embeddings\": 131072,"
                         " \"layer_types\": [\"mamba\", \"mamba\", \"attention\", \"mamba\"]}",
                         &model, &error),
        0, "%s", error.text);
    cr_expect(model.state_layers == 3 && model.d_ffn == 768 && model.d_ffn_shared == 1536);
    cr_assert_eq(
        load_config_json(
            "{\"model_type\": \"bamba\", \"hidden_size\": 4096, \"num_hidden_layers\": 32,"
            " \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
            " \"intermediate_size\": 14336, \"mamba_d_state\": 128, \"mamba_n_heads\": 128,"
            " \"mamba_d_head\": \"auto\", \"mamba_n_groups\": 1, \"vocab_size\": 128256,"
            " \"max_position_embeddings\": 4096, \"attn_layer_indices\": [9, 18, 27]}",
            &model, &error),
        0, "%s", error.text);
    cr_expect(model.state_layers == 29 && model.state_v_dim == 64);
    cr_expect_lt(fabs((double)model_parameters(&model) / 9.78e9 - 1), 0.01); /* Bamba-9B */
}

/* ---- steps ---- */

static double step_of(const struct model *model, const struct ifl_step_totals *totals)
{
    return step_on("a100-80gb-sxm", model, totals);
}

/* States are read and written once a step at 0.855 of 2.039 TB/s, whatever the context: with 4
 * bytes an element in place of 2 each sequence moves as much again. */
Test(mamba, a_decode_reads_and_writes_its_states)
{
    struct model model = load_model("nemotron-nano-9b-v2");
    const struct ifl_step_totals step = decodes(64, 1000);
    const double two = step_of(&model, &step);
    model.state_bytes = 4;
    const double more = 27.0 * 64 * 2 * (128.0 * 128 * 80 * 2) / (0.855 * 2.039e12);
    cr_expect_lt(fabs((step_of(&model, &step) - two) / more - 1), 0.03, "%g s, expected %g",
                 step_of(&model, &step) - two, more);
}

/* A layer without an MLP costs less than one with it, and more than none. */
Test(mamba, bare_layers_have_no_mlp)
{
    struct model model = load_model("nemotron-nano-9b-v2"), full = model, fewer = model;
    const struct ifl_step_totals step = decodes(64, 1000);
    full.bare_layers = 0;
    fewer.layers -= 6;
    fewer.state_layers -= 6;
    fewer.bare_layers = 0;
    cr_expect_lt(step_of(&model, &step), step_of(&full, &step));
    cr_expect_lt(step_of(&fewer, &step), step_of(&model, &step));
    cr_expect_eq(model_parameters(&full) - model_parameters(&model),
                 6 * (2 * (int64_t)4480 * 15680 + 4480));
}

/* ---- errors ---- */

static void expect_error(const char *of, const char *to, const char *expected)
{
    char text[2048];
    struct model model;
    struct ifl_error error;
    const char *at = strstr(nemotron_3, of);
    cr_assert(at, "%s", of);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - nemotron_3), nemotron_3, to,
             at + strlen(of));
    cr_expect_eq(load_config_json(text, &model, &error), IFL_E_INPUT, "%s", to);
    cr_expect(strstr(error.text, expected), "%s, expected %s", error.text, expected);
}

Test(mamba, errors_say_what_is_expected)
{
    expect_error("MEMEM*E", "MEMEX*E", "hybrid_override_pattern is");
    expect_error("MEMEM*E", "MEMEM*-", "some layers are an MLP and others have experts");
    expect_error("MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "MEE",
                 "more layers are MLPs than attend or have a state");
    expect_error("\"n_shared_experts\": 1", "\"moe_latent_size\": 1024, \"n_shared_experts\": 2",
                 "moe_latent_size is set with several shared experts");
    expect_error("float32", "float8", "mamba_ssm_cache_dtype is");
    expect_error("\"mamba_num_heads\": 64, ", "", "mamba_num_heads");
}

Test(mamba, ranks_share_heads_or_copy_the_one_group)
{
    const struct model granite = load_model("granite-4.0-h-small"),
                       nemotron = load_model("nemotron-3-nano-30b-a3b");
    struct ifl_error error;
    cr_expect_eq(model_check_parallel(&granite, 4, &error), 0);
    cr_expect_eq(model_check_parallel(&nemotron, 2, &error), 0);
    cr_expect_eq(model_state_bytes(&granite, 4),
                 128 / 4 * 128 * 64 * 2 + (128 * 64 / 4 + 2 * 128) * 3 * 2);
}
