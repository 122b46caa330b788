/* The image encoder of a vision-language model under vLLM's V1: what the profile run does with it,
 * by version (v1/worker/gpu_model_runner.py, profile_run; v1/worker/utils.py, MultiModalBudget;
 * v1/core/encoder_cache_manager.py; model_executor/models, get_mm_max_tokens_per_item). */
#include <string.h>

#include "cost/memory_encoder.h"
#include "inflight/minmax.h"

#include "import/names.h"
#include "import/objects.h"
#include "import/settle_vllm.h"

#define NOT_COUNTED "the image encoder is not counted: there are fewer K/V blocks than computed"

static const char *const flags[] = {"enable_multimodal_encoder_data_parallel",
                                    "language_model_only",
                                    "limit_mm_per_prompt",
                                    "mm_encoder_tp_mode",
                                    "mm_processor_kwargs",
                                    "skip_mm_profiling",
                                    NULL};
static const char *const lines[] = {"encoder_budget", "encoder_skipped", NULL};

/* One modality of the profile run, and what becomes of an item in it. */
struct items {
    long long n, tokens, kept;
};

static bool is_qwen(const struct model_vision *vision)
{
    return vision->rotary_rows > 0;
}

/* ---- limits ---- */

enum { NO_LIMIT = 999 }; /* config/multimodal.py */

/* --limit-mm-per-prompt: a count, or an object with one. */
static long long limit_of(const struct settled *s, const char *modality)
{
    json_t *limits = object_of(s->facts, "limit_mm_per_prompt");
    const json_t *one = json_object_get(limits, modality);
    const long long limit = json_is_object(one) ? object_count(one, "count", NO_LIMIT)
                                                : object_count(limits, modality, NO_LIMIT);
    json_decref(limits);
    return facts_true(s->facts, "language_model_only", false) ? 0 : limit;
}

/* Qwen's classes leave the encoder out by themselves in 0.11 already, others from 0.15 on
 * (interfaces.py, _mark_tower_model). */
static enum encoder_use use_of(const struct vllm *v, const struct model_vision *vision)
{
    const struct facts *facts = v->s->facts;
    const bool has_images = limit_of(v->s, "image") > 0;
    const bool has_videos = is_qwen(vision) && limit_of(v->s, "video") > 0;
    if (!has_images && !has_videos)
        return v->version >= (is_qwen(vision) ? 1100 : 1500) ? ENCODER_OFF : ENCODER_LOADED;
    return facts_true(facts, "skip_mm_profiling", false) || facts_get(facts, "encoder_skipped")
               ? ENCODER_LOADED
               : ENCODER_PROFILED;
}

/* ---- items ---- */

enum { QWEN3_VIDEO_TOKENS = 12288 }; /* longest_edge 25,165,824 of a video / (32^2 x 2) */

/* 0.11 and 0.12 count 12.5 tokens for each of a video, since a frame has a time stamp beside it. */
static bool counts_stamps(const struct vllm *v, const struct model_vision *vision)
{
    return vision->kind == VISION_QWEN3 && v->version >= 1100 && v->version < 1300;
}

/* The longest video that a prompt has room for: 16 frames, 14 from 0.11 on, two to a patch. An
 * image is beside it up to 0.9. */
static long long video_tokens(const struct vllm *v, const struct model_vision *vision)
{
    const long long image = vision->image_tokens, n_most = v->version < 1100 ? 8 : 7;
    const long long room = v->max_model_len - (v->version < 1000 ? image : 0);
    if (vision->kind == VISION_QWEN3)
        return counts_stamps(v, vision) ? QWEN3_VIDEO_TOKENS * 25 / 2 : QWEN3_VIDEO_TOKENS;
    return image * ifl_min(ifl_max(room / image, 1), n_most);
}

/* Of an image: embeddings, and from 0.10 on what stands between and around them, too. */
static long long image_tokens(const struct vllm *v, const struct model_vision *vision)
{
    const long long n = vision->image_tokens;
    if (v->version < 1000 || is_qwen(vision))
        return n;
    return vision->kind == VISION_SIGLIP ? n + 4 : n + 55; /* a break behind each of 55 rows */
}

static long long count_at(const struct settled *s, const char *key)
{
    const char *text = tree_text(tree_at(s->root, key));
    long long n = 0;
    return text && count_read(text, &n) ? n : 0;
}

/* The budget is that of a step, or one item's tokens. Up to 0.9.1 the last item may exceed it. */
static long long count_items(const struct vllm *v, long long tokens, long long limit)
{
    const long long budget = count_at(v->s, "serving.batching.max_batched_tokens");
    const long long seqs = ifl_max(count_at(v->s, "serving.batching.max_seqs"), 1);
    const long long fit = (budget + (v->version < 902 ? tokens - 1 : 0)) / tokens;
    const long long of_prompt = ifl_max(ifl_min(limit, v->max_model_len / tokens), 1);
    return ifl_max(ifl_min(fit, seqs * of_prompt), 1);
}

/* Rows that the cache has for an item: in 0.11 all of the budget, in 0.12 those of the item with
 * what is around it. */
static void keep(const struct vllm *v, long long budget, long long tokens, struct items *items)
{
    items->kept = items->tokens;
    if (v->version >= 1100 && v->version < 1200)
        items->kept = budget;
    else if (v->version >= 1200 && v->version < 1300)
        items->kept = ifl_max(tokens, items->tokens);
}

static struct items by_rule(const struct vllm *v, const struct model_vision *vision)
{
    const struct settled *s = v->s;
    const bool has_videos = is_qwen(vision) && limit_of(s, "video") > 0;
    const long long image = limit_of(s, "image") > 0 ? image_tokens(v, vision) : 0;
    const long long video = has_videos ? video_tokens(v, vision) : 0;
    const bool is_video = video > image;
    const long long tokens = ifl_max(ifl_max(video, image), 1);
    const long long step = count_at(s, "serving.batching.max_batched_tokens");
    struct items items = {.n = count_items(v, tokens, limit_of(s, is_video ? "video" : "image")),
                          .tokens = is_video ? video : vision->image_tokens};
    if (is_video && counts_stamps(v, vision))
        items.tokens = QWEN3_VIDEO_TOKENS;
    keep(v, ifl_max(step, tokens), tokens, &items);
    return items;
}

static struct items by_log(struct vllm *v, const struct model_vision *vision)
{
    struct settled *s = v->s;
    const long long budget = settle_at_least_1(s, "encoder_budget", 1);
    const char *modality = facts_text(s->facts, "encoder_modality");
    const bool is_video = modality && strcmp(modality, "video") == 0;
    struct items items = {.n = settle_at_least_1(s, "encoder_items", 1)};
    const long long tokens = ifl_max(budget / items.n, 1);
    items.tokens = is_video ? tokens : ifl_min(tokens, vision->image_tokens);
    if (is_video && counts_stamps(v, vision))
        items.tokens = ifl_max(tokens * 2 / 25, 1);
    keep(v, budget, is_video ? tokens : image_tokens(v, vision), &items);
    return items;
}

/* ---- keys ---- */

static void put_count(struct settled *s, const char *key, long long n, const char *says)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", n);
    if (says)
        settle_assume(s, key, text, says);
    else
        settle_put(s, key, "%s", text);
}

static void put_items(struct vllm *v, const struct model_vision *vision)
{
    const bool is_logged = facts_get(v->s->facts, "encoder_budget");
    const struct items items = is_logged ? by_log(v, vision) : by_rule(v, vision);
    const char *says = is_logged ? NULL : "what this release profiles the image encoder with";
    put_count(v->s, "serving.kv.encoder_items", items.n, says);
    put_count(v->s, "serving.kv.encoder_item_tokens", items.tokens, says);
    if (items.kept != items.tokens)
        put_count(v->s, "serving.kv.encoder_kept_tokens", items.kept, says);
    if (is_qwen(vision) && v->version < 1300)
        settle_put(v->s, "serving.kv.encoder_rotation", "%s",
                   v->version < 1100    ? "apart"
                   : v->version == 1100 ? "together"
                                        : "packed");
    if (facts_get(v->s->facts, "mm_processor_kwargs") && !is_logged)
        facts_decide(v->s->facts, "mm_processor_kwargs", FOUND_UNMODELLED, NULL,
                     "the size of images: the encoder is counted with the largest by default");
}

static void put_ranks(struct vllm *v)
{
    struct settled *s = v->s;
    const char *mode = facts_text(s->facts, "mm_encoder_tp_mode");
    if ((mode && strcmp(mode, "data") == 0) ||
        facts_true(s->facts, "enable_multimodal_encoder_data_parallel", false))
        settle_put(s, "serving.kv.encoder_replicated", "true");
}

static bool is_named_so(const struct settled *s)
{
    const struct fact *model = facts_checkpoint(s->facts);
    return model && model_encoder(model->value);
}

/* Nothing to count it with. A log that has the number of blocks needs none. */
static void leave_out(struct vllm *v, bool is_there)
{
    struct settled *s = v->s;
    settle_decide(s, flags, FOUND_HARMLESS, NULL, NULL);
    settle_decide(s, lines, FOUND_HARMLESS, NULL, NULL);
    const bool has_blocks = facts_get(s->facts, "kv_tokens") ||
                            facts_get(s->facts, "num_gpu_blocks") ||
                            facts_get(s->facts, "num_gpu_blocks_override");
    if (is_there && !has_blocks)
        settle_find(s, FOUND_UNMODELLED, s->facts->server_at, "image encoder", NULL, NOT_COUNTED);
}

void vllm_settle_encoder(struct vllm *v)
{
    struct model model = {.layers = 0};
    const bool is_known = settle_known_model(v->s, &model);
    const bool logs_one = facts_get(v->s->facts, "encoder_budget");
    if (v->s->code < 0)
        return;
    if (!is_known || !vision_is_known(&model.vision) || !v->v1 || v->version < 800) {
        leave_out(v, logs_one || model.vision.kind != VISION_NONE || is_named_so(v->s));
        return;
    }
    const enum encoder_use use = use_of(v, &model.vision);
    if (v->max_model_len == 0)
        v->max_model_len = model.max_model_len;
    if (use != ENCODER_PROFILED)
        settle_put(v->s, "serving.kv.encoder", use == ENCODER_OFF ? "off" : "loaded");
    else
        put_items(v, &model.vision);
    put_ranks(v);
}
