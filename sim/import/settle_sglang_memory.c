/* SGLang's defaults that go by the GPU: its chunk and its share of memory, by sglang_memory.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cost/model.h"

#include "import/names.h"
#include "import/settle_sglang.h"
#include "import/sglang_memory.h"
#include "import/words.h"

void sglang_settle_part(struct settled *s, const char *name, const char *key, long long groups)
{
    const struct fact *fact = facts_get(s->facts, name);
    const long long count = settle_at_least_1(s, name, 1) / (fact->forced ? 1 : groups);
    settle_put(s, key, "%lld", count > 1 ? count : 1);
}

/* ---- defaults that go by the GPU ---- */

/* The newest release where none is said; one that is not known is counted as the nearest that is,
 * and *is_known is false. */
static int version_of(const struct settled *s, int *post, bool *is_known)
{
    const char *text = facts_text(s->facts, "version");
    int major = -1, minor = 0, patch = 0;
    *post = 0;
    const bool is_read = text &&
                         sscanf(text, "%d.%d.%d.post%d", &major, &minor, &patch, post) >= 2 &&
                         major == 0 && minor >= 0 && minor <= 99 && patch >= 0 && patch <= 99;
    const int version = is_read ? 100 * minor + patch : SGLANG_NEWEST;
    *is_known = is_read && version >= SGLANG_OLDEST && version <= SGLANG_NEWEST;
    return version < SGLANG_OLDEST   ? SGLANG_OLDEST
           : version > SGLANG_NEWEST ? SGLANG_NEWEST
                                     : version;
}

/* A release that is named and not known. */
void sglang_check_version(struct settled *s)
{
    const struct fact *fact = facts_get(s->facts, "version");
    bool is_known;
    int post;
    const int version = version_of(s, &post, &is_known);
    char what[96];
    if (!fact || is_known)
        return;
    snprintf(what, sizeof what, "SGLang %.60s, counted as 0.%d.%d", fact->value, version / 100,
             version % 100);
    settle_find(s, FOUND_ASSUMED, fact->at, what, NULL,
                "this release is not known: its memory and its chunk are those of the nearest one "
                "that is");
}

static enum sglang_drafts drafts_of(const struct settled *s)
{
    const char *name = facts_text(s->facts, "speculative_algorithm");
    if (!name)
        return SGLANG_NO_DRAFTS;
    return strcasecmp(name, "NGRAM") == 0        ? SGLANG_NGRAMS
           : strcasecmp(name, "STANDALONE") == 0 ? SGLANG_DRAFT_MODEL
                                                 : SGLANG_HEAD;
}

static enum sglang_role role_of(const struct settled *s)
{
    const char *name = facts_text(s->facts, "disaggregation_mode");
    return name && strcmp(name, "prefill") == 0  ? SGLANG_PREFILL
           : name && strcmp(name, "decode") == 0 ? SGLANG_DECODE
                                                 : SGLANG_BOTH;
}

static bool has_any(const struct settled *s, const char *const *names)
{
    for (; *names; names++)
        if (facts_get(s->facts, *names))
            return true;
    return false;
}

static void read_graphs(struct settled *s, struct sglang_server *server)
{
    static const char *const off[] = {"disable_cuda_graph", "disable_decode_cuda_graph", NULL};
    static const char *const prompts_off[] = {"disable_piecewise_cuda_graph",
                                              "disable_prefill_cuda_graph", NULL};
    static const char *const against[] = {"enable_torch_compile",
                                          "enable_lora",
                                          "lora_paths",
                                          "enable_hierarchical_cache",
                                          "enable_deterministic_inference",
                                          "enable_symm_mem",
                                          "enable_eplb",
                                          NULL};
    const char *exchange = facts_text(s->facts, "moe_a2a_backend");
    const bool exchanges = exchange && strcmp(exchange, "none") != 0;
    server->graph_seqs = settle_number(s, "cuda_graph_max_bs", 0);
    if (server->graph_seqs == 0)
        server->graph_seqs = settle_number(s, "cuda_graph_max_bs_decode", 0);
    server->no_graphs = has_any(s, off);
    server->no_prompt_graphs = has_any(s, prompts_off);
    server->no_fused_prompts = server->groups > 1 || exchanges || has_any(s, against);
    server->deepep = exchange && strcmp(exchange, "deepep") == 0;
}

/* ---- images ---- */

/* The encoder that the checkpoint's name tells, or that of its profile, which is of the text part.
 */
static const struct encoder_name *named_encoder(const struct settled *s)
{
    const char *checkpoint = facts_text(s->facts, facts_model_name(s->facts));
    const char *profile = tree_text(tree_at(s->root, "model"));
    const struct encoder_name *encoder = checkpoint ? model_encoder(checkpoint) : NULL;
    return !encoder && profile ? model_encoder(profile) : encoder;
}

/* What there is of an encoder: a folder's config.json says it, else the name does. */
static bool find_words(const struct settled *s, struct vision_words *words, bool *is_sized)
{
    const char *profile = tree_text(tree_at(s->root, "model"));
    struct model model;
    *words = (struct vision_words){.has_config = true};
    *is_sized = true;
    if (profile && strchr(profile, '/') && settle_known_model(s, &model)) {
        *words = model.vision.words;
        return model.vision.kind != VISION_NONE;
    }
    const struct encoder_name *encoder = named_encoder(s);
    if (!encoder)
        return false;
    snprintf(words->model_type, sizeof words->model_type, "%s",
             encoder->model_type ? encoder->model_type : "");
    words->layers = (int32_t)encoder->n_layers;
    words->width = (int32_t)encoder->n_width;
    *is_sized = encoder->n_width > 0;
    return true;
}

static struct sglang_images images_of(const struct settled *s)
{
    static const char *const optional[] = {"gemma3", "llama4", "step3_vl", NULL};
    static const char *const with_graphs[] = {"kimi_k25", "qwen3_5", "qwen3_5_moe", NULL};
    struct vision_words words;
    bool is_sized;
    if (!find_words(s, &words, &is_sized))
        return (struct sglang_images){.is_there = false};
    return (struct sglang_images){
        .is_there = true,
        .is_optional = word_is_one_of(words.model_type, optional),
        .is_asked = facts_true(s->facts, "enable_multimodal", false),
        .is_left_out = facts_true(s->facts, "language_only", false),
        .is_off = facts_true(s->facts, "language_model_only", false),
        .keeps_prompt_graphs = word_is_one_of(words.model_type, with_graphs),
        .has_config = words.has_config,
        .layers = words.layers,
        .width = words.width,
    };
}

/* What a model with images keeps of the share, and a line of the report about it. */
static double image_frac(struct settled *s, const struct sglang_server *server, bool is_given)
{
    struct vision_words words;
    bool is_sized = true;
    char what[64];
    find_words(s, &words, &is_sized);
    const bool is_unknown = !is_given && !is_sized && sglang_images_go_by_size(server);
    const double frac = is_unknown ? 1 : sglang_image_frac(server, is_given);
    snprintf(what, sizeof what, "image encoder: %.4g of the share", frac);
    if (is_unknown)
        settle_find(s, FOUND_UNMODELLED, s->facts->server_at, "image encoder", NULL,
                    "SGLang's default share of memory is less by its size, which no config.json "
                    "says: there are fewer K/V blocks than computed");
    else if (frac < 1)
        settle_find(s, FOUND_ASSUMED, (struct place){0}, what, NULL,
                    "SGLang leaves memory for the images of this model");
    return frac;
}

/* ---- memory ---- */

/* GiB of a GPU, as far as the log tells them: what is free before the weights are loaded, which is
 * a little less than the whole; 0: it does not tell. The classes of memory lie so far apart that no
 * GPU changes its class by that. A GPU that the log names is known better; the one of --hardware
 * may be another than the server's. *fact is what the log says. */
static double logged_gib(const struct settled *s, const struct fact **fact)
{
    const struct fact *gpu = facts_get(s->facts, "gpu");
    const struct fact *unloaded = facts_get(s->facts, "free_gib");
    const struct fact *loaded = facts_get(s->facts, "loaded_gib");
    double gib = 0, weights_gib = 0;
    *fact = unloaded ? unloaded : loaded;
    if (!*fact || (gpu && gpu->at.line > 0))
        return 0;
    sscanf((*fact)->value, unloaded ? "%lf" : "%lf GB, mem usage=%lf", &gib, &weights_gib);
    return gib + weights_gib;
}

static double gpu_mib(const struct settled *s)
{
    static const struct gpu_name usual = {.name = "NVIDIA H100 80GB HBM3", .smi_mib = 81559};
    const struct gpu_name *gpu = settle_gpu(s);
    const struct fact *fact;
    const double gib = logged_gib(s, &fact);
    return gib > 0 ? 1024 * gib : (gpu ? gpu : &usual)->smi_mib;
}

/* What the server was asked for, before attention in parallel divides it. */
static struct sglang_server server_of(struct settled *s, long long groups)
{
    const struct fact *chunk = facts_get(s->facts, "chunked_prefill_size");
    const char *profile = tree_text(tree_at(s->root, "model"));
    bool is_known;
    int post;
    const int version = version_of(s, &post, &is_known);
    struct sglang_server server = {
        .version = version,
        .post = post,
        .gpu_mib = gpu_mib(s),
        .tensor = settle_number(s, "tp_size", 1),
        .pipeline = settle_number(s, "pp_size", 1),
        .groups = groups,
        .max_prefill_tokens = settle_number(s, "max_prefill_tokens", 16384),
        .max_seqs = settle_number(s, "max_running_requests", 0),
        .draft_tokens = settle_number(s, "speculative_num_draft_tokens", 1),
        .drafts = drafts_of(s),
        .role = role_of(s),
        .is_llama_2 = profile && strncmp(profile, "llama-2-", 8) == 0,
        .is_latent = profile && model_is_latent_profile(profile),
        .images = images_of(s),
    };
    if (chunk && strcmp(chunk->value, "-1") == 0)
        server.chunk_tokens = -1;
    else if (chunk)
        server.chunk_tokens =
            settle_number(s, "chunked_prefill_size", 0) * (chunk->forced ? groups : 1);
    read_graphs(s, &server);
    return server;
}

static void assume_chunk(struct settled *s, long long groups)
{
    static const char *const key = "serving.batching.chunk_tokens";
    const struct sglang_server server = server_of(s, groups);
    const long long dflt = sglang_chunk_tokens(&server) / groups;
    const struct fact *fact;
    const double gib = logged_gib(s, &fact);
    char what[64] = "";
    if (gib > 0)
        snprintf(what, sizeof what, "a GPU with %.2f GB before the weights", gib);
    settle_put(s, key, "%lld", dflt > 1 ? dflt : 1);
    settle_find(s, FOUND_ASSUMED, gib > 0 ? fact->at : (struct place){0}, what, key,
                gib > 0 || settle_gpu(s) ? groups > 1
                                               ? "SGLang's default on this GPU, a group's part"
                                               : "SGLang's default on this GPU"
                : groups > 1 ? "SGLang's default on GPUs of 80 to 160 GB, a group's part"
                             : "SGLang's default on GPUs of 80 to 160 GB");
}

/* chunked_prefill_size -1: prompts run whole. */
void sglang_settle_chunk(struct settled *s, long long groups)
{
    const char *chunk = facts_text(s->facts, "chunked_prefill_size");
    if (!chunk)
        assume_chunk(s, groups);
    else if (strcmp(chunk, "-1") == 0)
        settle_put(s, "serving.batching.chunk_tokens", "0");
    else if (strcmp(chunk, "0") != 0)
        sglang_settle_part(s, "chunked_prefill_size", "serving.batching.chunk_tokens", groups);
}

/* The share that SGLang takes by default, and by which release and GPU. */
static void assume_share(struct settled *s, long long groups)
{
    const struct sglang_server server = server_of(s, groups);
    const struct gpu_name *gpu = settle_gpu(s);
    bool is_named; /* the release, and it is known */
    int post;
    version_of(s, &post, &is_named);
    const bool is_told = is_named || !facts_get(s->facts, "version");
    char what[96];
    snprintf(what, sizeof what, "SGLang %d.%d.%d, %.40s", 0, server.version / 100,
             server.version % 100, gpu ? gpu->name : "NVIDIA H100 80GB HBM3");
    const double frac = image_frac(s, &server, false);
    settle_put(s, "serving.kv.memory_utilization", "%.15g", frac * sglang_static_share(&server));
    settle_find(s, FOUND_ASSUMED, (struct place){0}, what, "serving.kv.memory_utilization",
                !is_told          ? gpu ? "the default of the nearest release that is known"
                                        : "the default of the nearest release that is known on an "
                                          "H100; give --hardware or --mem-fraction-static"
                : gpu && is_named ? "the default of this release on this GPU"
                : gpu             ? "no version is named: the default of the newest that is known"
                : is_named        ? "no GPU is named: the default of this release on an H100; give "
                                    "--hardware or --mem-fraction-static"
                           : "no GPU and no version is named: the default of the newest that is "
                             "known on an H100; give --hardware or --mem-fraction-static");
}

/* Up to 0.4.8 images take their part of what is given, too, unless a line of the log says what was
 * left. */
static void settle_given_share(struct settled *s, long long groups)
{
    const struct fact *fact = facts_get(s->facts, "mem_fraction_static");
    const struct sglang_server server = server_of(s, groups);
    const double share = settle_real_or(s, "mem_fraction_static", 0);
    const double frac = fact->forced ? 1 : image_frac(s, &server, true);
    settle_put(s, "serving.kv.memory_utilization", "%.15g", frac * share);
}

/* --mem-fraction-static is the share of the rule `sglang`. Blocks that are known need none. */
void sglang_settle_memory(struct settled *s, long long groups)
{
    static const char *const flags[] = {"enable_multimodal", "language_model_only", "language_only",
                                        NULL};
    const bool is_known = tree_at(s->root, "serving.kv.num_blocks");
    const bool is_said = facts_get(s->facts, "mem_fraction_static");
    if (s->code < 0 || is_said || is_known || !images_of(s).is_there)
        settle_decide(s, flags, FOUND_HARMLESS, NULL, NULL);
    if (s->code < 0 || (!is_said && is_known))
        return;
    settle_put(s, "serving.kv.sizing", "sglang");
    if (is_said)
        settle_given_share(s, groups);
    else
        assume_share(s, groups);
}
