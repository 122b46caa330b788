/* Models by name: a file in configs/models/, or a checkpoint's config.json. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tree.h"
#include "cost/document.h"
#include "cost/model.h"

#define AT(field, kind) .name = #field, .type = (kind), .offset = offsetof(struct model, field)
#define COUNT(field, dflt, min, max, unit, doc) AT(field, IFL_INT), dflt, min, max, NULL, unit, doc
#define FLAG(field, doc) AT(field, IFL_BOOL), 0, 0, 1, NULL, "", doc
#define CHOICE(field, choices, doc) AT(field, IFL_CHOICE), 0, 0, 0, choices, "", doc
#define TEXT(field, doc)                                                                           \
    AT(field, IFL_TEXT), 0, 0, sizeof(((struct model *)0)->field), NULL, "", doc

static const struct ifl_param fields[] = {
    {TEXT(about, "what it is, where its shapes were published")},
    {COUNT(layers, NAN, 1, IFL_MODEL_MAX_LAYERS, "layers", "decoder layers")},
    {COUNT(d_model, NAN, 1, IFL_MODEL_MAX_D_MODEL, "elements", "width of the residual stream")},
    {COUNT(n_q_heads, NAN, 1, IFL_MODEL_MAX_HEADS, "heads", "query heads")},
    {COUNT(n_kv_heads, 0, 0, IFL_MODEL_MAX_HEADS, "heads", "KV heads; 0: as many as query heads")},
    {COUNT(d_head, 0, 0, IFL_MODEL_MAX_D_HEAD, "elements",
           "width of a head; 0: d_model / n_q_heads")},
    {COUNT(d_ffn, NAN, 1, IFL_MODEL_MAX_D_FFN, "elements", "width of the MLP")},
    {COUNT(vocab, NAN, 1, IFL_MODEL_MAX_VOCAB, "tokens", "rows of the embedding")},
    {COUNT(max_model_len, NAN, 1, IFL_MODEL_MAX_TOKENS, "tokens", "longest prompt + output")},
    {CHOICE(mlp, "gated|plain", "gated has two up projections")},
    {CHOICE(norm, "rmsnorm|layernorm", "layernorm has a bias")},
    {CHOICE(attention_bias, "none|qkv|all", "which attention projections have a bias")},
    {FLAG(mlp_bias, "the MLP's projections have a bias")},
    {FLAG(qk_norm, "queries and keys are normalised in every layer")},
    {FLAG(branch_norms, "norms behind attention and MLP, beside those before them")},
    {FLAG(embedding_norm, "a norm follows the embedding")},
    {FLAG(tied_embeddings, "the LM head is the embedding")},
    {COUNT(learned_positions, 0, 0, IFL_MODEL_MAX_TOKENS, "rows",
           "rows of a learned position table")},
    {COUNT(weight_bytes, 2, 1, 8, "bytes", "of an element of weights and activations")},
    {COUNT(kv_bytes, 2, 1, 8, "bytes", "of an element of the KV cache")},
    {CHOICE(quantization, "none|fp8|int8|int4|mxfp4|nvfp4",
            "of the layers' matrices; mxfp4: of the experts'")},
    {COUNT(n_experts, 0, 0, MODEL_MAX_EXPERTS, "experts", "MLPs of d_ffn in a layer; 0: dense")},
    {COUNT(experts_per_token, 0, 0, MODEL_MAX_EXPERTS, "experts", "that a router picks")},
    {COUNT(window_tokens, 0, 0, IFL_MODEL_MAX_TOKENS, "tokens",
           "attention of window_layers sees no further back; 0: everything")},
    {COUNT(window_layers, 0, 0, IFL_MODEL_MAX_LAYERS, "layers",
           "that keep to window_tokens; the others see everything. 0: all keep to it")},
    {FLAG(chunked, "these see the tokens of their chunk of window_tokens")},
    {COUNT(state_layers, 0, 0, IFL_MODEL_MAX_LAYERS, "layers",
           "with a state in place of attention and its K/V; 0: none")},
    {CHOICE(state_rule, "delta|mamba2|mamba1|kda|lightning|conv",
            "gated delta rule, Mamba-2, Mamba-1, Kimi Delta Attention, lightning attention, or a "
            "short convolution alone")},
    {COUNT(state_k_heads, 0, 0, IFL_MODEL_MAX_HEADS, "heads", "of their queries and keys")},
    {COUNT(state_v_heads, 0, 0, IFL_MODEL_MAX_HEADS, "heads", "of their values")},
    {COUNT(state_k_dim, 0, 0, IFL_MODEL_MAX_D_HEAD, "elements", "width of a query and a key")},
    {COUNT(state_v_dim, 0, 0, IFL_MODEL_MAX_D_HEAD, "elements", "width of a value")},
    {COUNT(state_rank, 0, 0, IFL_MODEL_MAX_D_MODEL, "elements",
           "mamba1, kda: width that steps, or decays and gates, are made of")},
    {COUNT(conv_tokens, 0, 0, 64, "tokens", "that the convolution before them spans; 0: 4")},
    {COUNT(state_bytes, 0, 0, 8, "bytes", "of an element of a state; 0: 4")},
    {FLAG(attention_gate, "queries have a gate of their width")},
    {COUNT(kv_lora_rank, 0, 0, IFL_MODEL_MAX_D_HEAD, "elements",
           "multi-head latent attention: of the latent that K and V are made of; 0: none")},
    {COUNT(q_lora_rank, 0, 0, IFL_MODEL_MAX_D_MODEL, "elements",
           "of the latent that queries are made of; 0: of the hidden state itself")},
    {COUNT(qk_nope_head_dim, 0, 0, IFL_MODEL_MAX_D_HEAD, "elements",
           "of a query and a key, without position")},
    {COUNT(qk_rope_head_dim, 0, 0, IFL_MODEL_MAX_D_HEAD, "elements",
           "of a query, and of the key that all heads share, with rotary position")},
    {COUNT(v_head_dim, 0, 0, IFL_MODEL_MAX_D_HEAD, "elements", "of a value")},
    {COUNT(index_heads, 0, 0, IFL_MODEL_MAX_HEADS, "heads",
           "of the indexer that picks the tokens that are attended to; 0: there is none")},
    {COUNT(index_head_dim, 0, 0, IFL_MODEL_MAX_D_HEAD, "elements", "width of one of them")},
    {COUNT(index_topk, 0, 0, IFL_MODEL_MAX_TOKENS, "tokens", "that it picks for each query")},
    {COUNT(index_layers, 0, 0, IFL_MODEL_MAX_LAYERS, "layers",
           "with an indexer, of which the others take the tokens; 0: all")},
    {COUNT(first_dense_layers, 0, 0, IFL_MODEL_MAX_LAYERS, "layers",
           "at the front, with one MLP of d_ffn_dense in place of experts")},
    {COUNT(d_ffn_dense, 0, 0, IFL_MODEL_MAX_D_FFN, "elements", "width of their MLP")},
    {COUNT(d_expert, 0, 0, IFL_MODEL_MAX_D_MODEL, "elements",
           "width of what an expert reads and writes, if it is a latent; 0: d_model")},
    {COUNT(bare_layers, 0, 0, IFL_MODEL_MAX_LAYERS, "layers",
           "that have attention or a state alone, no MLP")},
    {COUNT(shared_experts, 0, 0, MODEL_MAX_EXPERTS, "experts",
           "that each token goes through beside those that a router picks")},
    {COUNT(d_ffn_shared, 0, 0, IFL_MODEL_MAX_D_FFN, "elements",
           "width of a shared expert; 0: as d_ffn")},
};

static int complete(const struct node *root, struct model *model, struct ifl_error *error)
{
    struct ifl_error reason;
    const char *guilty = model_complete(model, &reason);
    if (!guilty)
        return 0;
    const struct node *node = tree_child(root, guilty);
    return tree_fail(node ? node : root, error, "%s", reason.text);
}

static int read_yaml(const char *path, struct model *model, struct ifl_error *error)
{
    struct node *root = NULL;
    int code = tree_load(path, &root, error);
    if (code)
        return code;
    code = fields_read(root, "", fields, sizeof fields / sizeof *fields, NULL, model, error);
    if (!code)
        code = complete(root, model, error);
    tree_free(root);
    return code;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* If the path is a folder, a checkpoint, appends the config.json that every checkpoint has. */
static void enter_folder(struct document *document)
{
    struct stat status;
    const size_t n = strlen(document->path);
    if (stat(document->path, &status) < 0 || !S_ISDIR(status.st_mode))
        return;
    snprintf(document->path + n, sizeof document->path - n, "%sconfig.json",
             document->path[n - 1] == '/' ? "" : "/");
    snprintf(document->stem, sizeof document->stem, "config");
}

/* Names the model after the file's folder. The name stays if that is "." or "..". */
static void name_after_folder(const char *path, char name[128])
{
    const char *end = strrchr(path, '/');
    if (!end)
        return;
    const char *start = end;
    while (start > path && start[-1] != '/')
        start--;
    if (start + strspn(start, ".") < end)
        snprintf(name, 128, "%.*s", (int)(end - start), start);
}

int model_load(const char *name, struct model *model, struct ifl_error *error)
{
    struct document document;
    *model = (struct model){.layers = 0};
    int code = document_find("models", name, &document, error);
    if (code)
        return code;
    enter_folder(&document);
    code = ends_with(document.path, ".json") ? model_read_huggingface(document.path, model, error)
                                             : read_yaml(document.path, model, error);
    memcpy(model->name, document.stem, sizeof model->name);
    if (strcmp(model->name, "config") == 0)
        name_after_folder(document.path, model->name);
    return code;
}
