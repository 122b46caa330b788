/* Finds which part of a quantised checkpoint's matrices are left in 16 bits, by the modules that
 * its quantization_config names. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cost/huggingface_kinds.h"
#include "cost/module_rules.h"

/* ---- what a module is called ---- */

/* The modules of a layer by part; where there are several names, they are separated by bars. */
static const struct family {
    const char *model_type, *blocks[MODEL_PARTS];
} families[] = {
    {"mixtral",
     {"self_attn", "", "mlp", "", "block_sparse_moe.experts.0|block_sparse_moe.experts"}},
    {"minimax_m2",
     {"self_attn", "", "mlp", "",
      "block_sparse_moe.experts.0|block_sparse_moe.experts|mlp.experts.0|mlp.experts"}},
    {"llama4_text",
     {"self_attn", "", "feed_forward", "feed_forward.shared_expert",
      "feed_forward.experts.0|feed_forward.experts"}},
    {"phimoe", {"self_attn", "", "", "", "block_sparse_moe.experts.0|block_sparse_moe.experts"}},
    {"granitemoe", {"self_attn", "", "", "", "block_sparse_moe"}},
    {"granitemoeshared", {"self_attn", "", "", "shared_mlp", "block_sparse_moe"}},
    {"hunyuan_v1_moe", {"self_attn", "", "", "mlp.shared_mlp", "mlp.experts.0|mlp.experts"}},
    {"bamba", {"self_attn", "mamba", "feed_forward"}},
    {"falcon_h1", {"self_attn", "mamba", "feed_forward"}},
    {"jamba",
     {"self_attn", "mamba", "feed_forward", "", "feed_forward.experts.0|feed_forward.experts"}},
    {"lfm2", {"self_attn", "conv", "feed_forward"}},
    {"lfm2_moe",
     {"self_attn", "conv", "feed_forward", "", "feed_forward.experts.0|feed_forward.experts"}},
    {"minimax",
     {"self_attn", "self_attn", "", "",
      "block_sparse_moe.experts.0|block_sparse_moe.experts|mlp.experts.0|mlp.experts"}},
    {"minimax_text_01",
     {"self_attn", "self_attn", "", "", "block_sparse_moe.experts.0|block_sparse_moe.experts"}},
    {"minimax_m1",
     {"self_attn", "self_attn", "", "", "block_sparse_moe.experts.0|block_sparse_moe.experts"}},
    {"kimi_linear",
     {"self_attn", "self_attn", "mlp", "block_sparse_moe.shared_experts|mlp.shared_experts",
      "block_sparse_moe.experts.0|block_sparse_moe.experts|mlp.experts.0|mlp.experts"}},
    {"step3_text", {"self_attn", "", "mlp", "share_expert", "moe"}},
    {"granitemoehybrid", {"self_attn", "mamba", "shared_mlp", "shared_mlp", "block_sparse_moe"}},
    {"nemotron_h",
     {"mixer", "mixer", "mixer", "mixer.shared_experts", "mixer.experts.0|mixer.experts"}},
    {NULL,
     {"self_attn", "linear_attn", "mlp", "mlp.shared_expert|mlp.shared_experts",
      "mlp.experts.0|mlp.experts"}},
};

/* Layers of a text model by itself, as a part of one that reads images, and of Nemotron-H. */
static const char *const text_prefixes[] = {"model.", NULL},
                         *const part_prefixes[] = {"model.language_model.", "language_model.model.",
                                                   NULL},
                         *const backbone_prefixes[] = {"backbone.", "model.", NULL};

struct checkpoint {
    struct ifl_hf_config *config;
    const struct model *model;
    const struct family *family;
    const char *const *prefixes;
    const char *letters; /* of Nemotron-H's or Falcon-H1's layers, one each; NULL: of others */
    struct module_rules plain, targets;
    bool all_are_targets;
};

static const struct family *family_of(const char *model_type)
{
    const struct family *family = families;
    while (family->model_type && strcmp(family->model_type, model_type) != 0)
        family++;
    return family;
}

/* ---- the rules ---- */

static void refuse_expression(struct ifl_hf_config *config, const char *text)
{
    char what[160];
    snprintf(what, sizeof what, "quantization_config names modules by %.100s", text);
    hf_refuse(config, what, "a regular expression");
}

static void add_rule(struct checkpoint *of, struct module_rules *rules, const char *text)
{
    struct ifl_hf_config *config = of->config;
    const int code = config->code ? 0 : module_rules_add(rules, text);
    if (code == IFL_E_NOMEM)
        config->code = ifl_fail_nomem(config->error);
    else if (code < 0)
        refuse_expression(config, text);
}

static void add_list(struct checkpoint *of, const char *key, const json_t *list)
{
    if (list && !json_is_null(list) && !json_is_array(list))
        ifl_hf_fail(of->config, key, list, "a list of names");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *name = json_array_get(list, i);
        if (json_is_string(name))
            add_rule(of, &of->plain, json_string_value(name));
        else
            ifl_hf_fail(of->config, key, name, "names in the list");
    }
}

/* GPTQModel's modules that are left out (-:), and those of auto-round with 16 bits. */
static void add_objects(struct checkpoint *of, const json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)ifl_hf_value(object, "dynamic"), name,
                        value) if (strncmp(name, "-:", 2) == 0) add_rule(of, &of->plain, name);
    json_object_foreach((json_t *)ifl_hf_value(object, "extra_config"), name,
                        value) if (json_integer_value(ifl_hf_value(value, "bits")) >= 16)
        add_rule(of, &of->plain, name);
}

/* Names of classes, such as Linear, stand for all modules. */
static bool is_class(const char *target)
{
    return *target >= 'A' && *target <= 'Z';
}

static void add_targets(struct checkpoint *of, const json_t *group)
{
    const json_t *targets = ifl_hf_value(group, "targets");
    if (!ifl_hf_value(group, "weights"))
        return;
    of->all_are_targets |= json_array_size(targets) == 0;
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const char *target = json_string_value(json_array_get(targets, i));
        of->all_are_targets |= !target || is_class(target);
        if (target && !is_class(target))
            add_rule(of, &of->targets, target);
    }
}

/* The keys are those of compressed-tensors, fp8 and fbgemm_fp8, AWQ and transformers, Model
 * Optimizer, bitsandbytes. */
static void add_rules(struct checkpoint *of, const json_t *object)
{
    static const char *const keys[] = {"ignore", "ignored_layers", "modules_to_not_convert",
                                       "exclude_modules", "llm_int8_skip_modules"};
    const char *name;
    json_t *group;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        add_list(of, keys[i], ifl_hf_value(object, keys[i]));
    add_objects(of, object);
    json_object_foreach((json_t *)ifl_hf_value(object, "config_groups"), name, group)
        add_targets(of, group);
    of->all_are_targets |= of->targets.n == 0;
}

/* ---- a module ---- */

/* The next of some texts between bars, at most n_bytes of it. False: there is none. */
static bool next_name(const char **from, char *name, size_t n_bytes)
{
    const size_t n = strcspn(*from, "|");
    if (n == 0)
        return false;
    snprintf(name, n_bytes, "%.*s", (int)n, *from);
    *from += n + ((*from)[n] == '|');
    return true;
}

static void refuse_name(struct ifl_hf_config *config, const char *name)
{
    char what[160];
    snprintf(what, sizeof what, "quantization_config's expressions take too long for %.80s", name);
    hf_refuse(config, what, "ones that match a name at once");
}

static bool is_named(const struct checkpoint *of, const struct module_rules *rules, int32_t layer,
                     const char *block, const char *matrices)
{
    char matrix[64], name[256];
    while (next_name(&matrices, matrix, sizeof matrix))
        for (const char *const *prefix = of->prefixes; *prefix; prefix++) {
            snprintf(name, sizeof name, "%slayers.%d.%s.%s", *prefix, layer, block, matrix);
            const int named = module_rules_name(rules, name);
            if (named < 0)
                refuse_name(of->config, name);
            if (named)
                return true;
        }
    return false;
}

static bool is_in(const struct checkpoint *of, const struct module_rules *rules, int32_t layer,
                  enum model_part part, const char *matrices)
{
    const char *blocks = of->family->blocks[part];
    char block[64];
    while (blocks && next_name(&blocks, block, sizeof block))
        if (is_named(of, rules, layer, block, matrices))
            return true;
    return false;
}

static bool is_plain(const struct checkpoint *of, int32_t layer, enum model_part part,
                     const char *matrices)
{
    return is_in(of, &of->plain, layer, part, matrices) ||
           (!of->all_are_targets && !is_in(of, &of->targets, layer, part, matrices));
}

/* ---- a layer ---- */

/* What a layer's matrices of a part are called, and their numbers of elements. */
struct matrix {
    const char *names;
    double elements;
};
enum { MOST_MATRICES = 8 };

static size_t latent_matrices(const struct model *model, struct matrix of[MOST_MATRICES])
{
    struct model_linear linears[MODEL_LINEARS], ups[MODEL_UPS];
    const double d = model->d_model, index_heads = model->index_heads;
    model_layer_linears(model, 1, linears);
    model_latent_ups(model, 1, ups);
    const bool compresses = model->q_lora_rank > 0;
    const double down = (double)model->d_head * d;
    const double indexed = (double)model_index_layers(model) / model->layers;
    size_t n = 0;
    of[n++] = (struct matrix){compresses ? "q_a_proj|fused_qkv_a_proj" : "q_proj",
                              (double)(linears[0].n * linears[0].k) - down};
    of[n++] = (struct matrix){"kv_a_proj_with_mqa|fused_qkv_a_proj", down};
    of[n++] = (struct matrix){"q_b_proj", (double)(ups[MODEL_Q_UP].n * ups[MODEL_Q_UP].k)};
    of[n++] = (struct matrix){"kv_b_proj", (double)(ups[MODEL_KV_UP].n * ups[MODEL_KV_UP].k)};
    of[n++] = (struct matrix){"o_proj", (double)(linears[1].n * linears[1].k)};
    of[n++] = (struct matrix){"indexer.wq_b",
                              indexed * index_heads * model->index_head_dim * model->q_lora_rank};
    of[n++] = (struct matrix){"indexer.wk", indexed * model->index_head_dim * d};
    of[n++] = (struct matrix){"indexer.weights_proj", indexed * index_heads * d};
    return n;
}

static size_t attention_matrices(const struct model *model, struct matrix of[MOST_MATRICES])
{
    if (model_is_latent(model))
        return latent_matrices(model, of);
    const double head = (double)model->d_head * model->d_model;
    const double h = model->n_q_heads, g = model->n_kv_heads, rank = model->q_lora_rank;
    const double queries = rank > 0 ? rank * model->d_model : h * head;
    size_t n = 0;
    of[n++] = (struct matrix){"q_proj|qkv_proj", queries + (model->attention_gate ? h * head : 0)};
    of[n++] = (struct matrix){"k_proj|qkv_proj", g * head};
    of[n++] = (struct matrix){"v_proj|qkv_proj", g * head};
    of[n++] = (struct matrix){"o_proj|out_proj", h * head};
    if (rank > 0)
        of[n++] = (struct matrix){"wq", rank * h * model->d_head};
    return n;
}

static size_t delta_matrices(const struct model *model, struct matrix of[MOST_MATRICES])
{
    const double d = model->d_model, v_heads = model->state_v_heads;
    const double values = v_heads * model->state_v_dim * d;
    of[0] = (struct matrix){"in_proj_qkvz|in_proj_qkv",
                            values + 2 * d * (double)model_state_keys(model, 1)};
    of[1] = (struct matrix){"in_proj_qkvz|in_proj_z", values};
    of[2] = (struct matrix){"in_proj_ba|in_proj_b", v_heads * d};
    of[3] = (struct matrix){"in_proj_ba|in_proj_a", v_heads * d};
    of[4] = (struct matrix){"out_proj", values};
    return 5;
}

/* The two projections to a low rank, and the two from it, are named alike. */
static size_t kda_matrices(const struct model *model, struct matrix of[MOST_MATRICES])
{
    const double d = model->d_model, rank = model->state_rank;
    const double keys = d * (double)model_state_keys(model, 1);
    const double values = (double)model_state_values(model, 1);
    of[0] = (struct matrix){"q_proj", keys};
    of[1] = (struct matrix){"k_proj", keys};
    of[2] = (struct matrix){"v_proj", d * values};
    of[3] = (struct matrix){"b_proj", d * model->state_v_heads};
    of[4] = (struct matrix){"f_a_proj|g_a_proj", 2 * d * rank};
    of[5] = (struct matrix){"f_b_proj|g_b_proj", 2 * rank * values};
    of[6] = (struct matrix){"o_proj", d * values};
    return 7;
}

/* The gate of lightning attention has a projection of its own. */
static size_t projections(const struct model *model, struct matrix of[MOST_MATRICES])
{
    struct model_linear linears[MODEL_STATE_LINEARS];
    const bool is_lightning = model->state_rule == MODEL_STATE_LIGHTNING;
    const double gate = is_lightning ? (double)model_state_values(model, 1) * model->d_model : 0;
    size_t n = 0;
    model_state_linears(model, 1, linears);
    const double in = (double)linears[MODEL_STATE_IN].n * (double)linears[MODEL_STATE_IN].k;
    of[n++] = (struct matrix){is_lightning ? "qkv_proj" : "in_proj", in - gate};
    if (is_lightning)
        of[n++] = (struct matrix){"output_gate", gate};
    static const char *const names[] = {NULL, "out_proj", "x_proj", "dt_proj"};
    for (int i = MODEL_STATE_OUT; i < MODEL_STATE_LINEARS; i++)
        if (linears[i].n > 0)
            of[n++] = (struct matrix){names[i], (double)linears[i].n * (double)linears[i].k};
    return n;
}

static size_t state_matrices(const struct model *model, struct matrix of[MOST_MATRICES])
{
    switch ((enum model_state_rule)model->state_rule) {
    case MODEL_STATE_DELTA:
        return delta_matrices(model, of);
    case MODEL_STATE_KDA:
        return kda_matrices(model, of);
    case MODEL_STATE_MAMBA2:
    case MODEL_STATE_MAMBA1:
    case MODEL_STATE_LIGHTNING:
    case MODEL_STATE_CONV:
        break;
    }
    return projections(model, of);
}

/* The matrices of an MLP are of equal size. Mixtral's are w1, w3 and w2. */
static size_t mlp_matrices(const struct model *model, struct matrix of[MOST_MATRICES])
{
    size_t n = 0;
    if (model->mlp == MODEL_MLP_GATED)
        of[n++] = (struct matrix){"gate_proj|gate_up_proj|w1|input_linear", 1};
    of[n++] = (struct matrix){"up_proj|gate_up_proj|w3|input_linear", 1};
    of[n++] = (struct matrix){"down_proj|w2|output_linear", 1};
    return n;
}

static size_t matrices_of(const struct model *model, enum model_part part,
                          struct matrix of[MOST_MATRICES])
{
    if (part == MODEL_PART_ATTENTION)
        return attention_matrices(model, of);
    return part == MODEL_PART_STATE ? state_matrices(model, of) : mlp_matrices(model, of);
}

/* ---- all layers ---- */

static bool has_experts(const struct checkpoint *of, int32_t layer)
{
    return of->model->n_experts > 0 &&
           hf_has_experts(of->config->root, layer, of->model->first_dense_layers);
}

static bool has_part(const struct checkpoint *of, int32_t layer, enum model_part part)
{
    const bool has_state = of->model->state_layers > 0 && !hf_attends(of->config->root, layer);
    switch (part) {
    case MODEL_PART_ATTENTION:
        return !has_state;
    case MODEL_PART_STATE:
        return has_state;
    case MODEL_PART_MLP:
        return !has_experts(of, layer);
    case MODEL_PART_SHARED:
        return has_experts(of, layer) && of->model->shared_experts > 0;
    case MODEL_PART_EXPERTS:
        return has_experts(of, layer);
    case MODEL_PARTS:
        break;
    }
    return false;
}

/* A layer of Nemotron-H has one part, or experts and shared ones; one of Falcon-H1 (H) attention, a
 * state and an MLP. */
static bool has_letter(char letter, enum model_part part)
{
    static const char letters[] = {[MODEL_PART_ATTENTION] = '*',
                                   [MODEL_PART_STATE] = 'M',
                                   [MODEL_PART_MLP] = '-',
                                   [MODEL_PART_SHARED] = 'E',
                                   [MODEL_PART_EXPERTS] = 'E'};
    return letter == letters[part] || (letter == 'H' && part <= MODEL_PART_MLP);
}

static double plain_frac(const struct checkpoint *of, enum model_part part)
{
    struct matrix matrices[MOST_MATRICES];
    const size_t n = matrices_of(of->model, part, matrices);
    const int32_t n_layers = of->letters ? (int32_t)strlen(of->letters) : of->model->layers;
    double all = 0, plain = 0;
    for (int32_t layer = 0; layer < n_layers; layer++) {
        if (!(of->letters ? has_letter(of->letters[layer], part) : has_part(of, layer, part)))
            continue;
        for (size_t i = 0; i < n; i++) {
            all += matrices[i].elements;
            if (is_plain(of, layer, part, matrices[i].names))
                plain += matrices[i].elements;
        }
    }
    return all > 0 ? plain / all : 0;
}

/* Sizes of the matrices are those of the completed model: widths that follow from others may be
 * missing. One that cannot be completed is refused elsewhere. */
void hf_read_plain_parts(struct ifl_hf_config *config, const struct json_t *object, bool is_part,
                         struct model *model)
{
    const char *type = ifl_hf_text(config->root, "model_type");
    const bool is_nemotron = strcmp(type, "nemotron_h") == 0;
    char hybrids[IFL_MODEL_MAX_LAYERS + 1] = "";
    struct ifl_error reason;
    struct model whole = *model;
    if (config->code || model_complete(&whole, &reason))
        return;
    struct checkpoint of = {.config = config, .model = &whole, .family = family_of(type)};
    of.prefixes = is_nemotron ? backbone_prefixes : is_part ? part_prefixes : text_prefixes;
    of.letters = is_nemotron ? ifl_hf_text(config->root, "hybrid_override_pattern") : NULL;
    if (strcmp(type, "falcon_h1") == 0)
        of.letters = memset(hybrids, 'H', (size_t)whole.state_layers);
    add_rules(&of, object);
    if (!config->code && (of.plain.n > 0 || !of.all_are_targets))
        for (int part = 0; part < MODEL_PARTS; part++)
            model->plain_frac[part] = plain_frac(&of, (enum model_part)part);
    module_rules_free(&of.plain);
    module_rules_free(&of.targets);
}
