/* Functions that all readers of a Hugging Face config.json share, and the readers of single
 * architectures. */
#ifndef SIM_COST_HUGGINGFACE_KINDS_H
#define SIM_COST_HUGGINGFACE_KINDS_H

#include "cost/model.h"
#include "inflight/huggingface.h"

/* ---- shared ---- */

/* Sets the error "WHAT, expected EXPECTED", unless there is one already. */
void hf_refuse(struct ifl_hf_config *config, const char *what, const char *expected);
/* hf_need: reads a required count. The next one may be 0, and is 0 if the key is missing. */
int32_t hf_need(struct ifl_hf_config *config, const char *key, int32_t max);
int32_t hf_zero_or_count(struct ifl_hf_config *config, const char *key, int32_t max);

/* Copies a value of `from` to another key of the root, unless the root has that key already. */
void hf_rename(struct ifl_hf_config *config, const struct json_t *from, const char *older,
               const char *key);
/* True if a layer of a model with states has attention, false if it has a state: by the lists and
 * periods in the files of these families. */
bool hf_attends(const struct json_t *root, int32_t layer);
/* True if a layer of a model with experts has experts: by the period in the file or, without one,
 * every layer after the first n_dense. */
bool hf_has_experts(const struct json_t *root, int32_t layer, int32_t n_dense);

/* Refuses Qwen models in which some layers have experts and others have none. */
void hf_need_experts_everywhere(struct ifl_hf_config *config);

/* Attention of grouped queries, RMSNorm and gated MLPs: all but the MLPs' width, with d_head where
 * the file has none (0: it follows from the others); with it; with biases as Llama names them. */
void hf_read_shape(struct ifl_hf_config *config, struct model *model, int32_t d_head);
void hf_read_grouped(struct ifl_hf_config *config, struct model *model);
void hf_read_llama_like(struct ifl_hf_config *config, struct model *model);

/* The widths of latent attention, by the names of DeepSeek-V2. */
void hf_read_latent(struct ifl_hf_config *config, struct model *model);
/* The first n layers have a dense MLP, as wide as intermediate_size, in place of experts. */
void hf_read_dense_front(struct ifl_hf_config *config, struct model *model, int32_t n);

/* Sets plain MLPs, LayerNorm and biases in all projections, as in GPT-2. */
void hf_set_classic(struct model *model);

/* A window in all layers but each `period`-th one, unless layer_types names them; of `otherwise`
 * tokens where the file has none. One in all layers where the file has a window, which is left out
 * if a sequence never outgrows it. */
void hf_read_windows(struct ifl_hf_config *config, struct model *model, int32_t otherwise,
                     int32_t period);
void hf_read_window(struct ifl_hf_config *config, struct model *model);

/* ---- parts that make counts of parameters exact ---- */

/* Adds n elements of vectors to each layer; a negative n removes them. */
void hf_add_to_layers(struct model *model, int64_t n);
/* Attention and MLP of a layer share one norm: removes a norm per layer. */
void hf_share_norm(struct model *model);
/* The norms of queries and keys have weights per head, not one vector for all heads. */
void hf_widen_qk_norm(struct model *model);

/* The format of a quantised checkpoint's matrices; words for it, NULL if it is not quantised.
 * Scales of blocks of fp8 are left out. Needs the model's shapes; is_part: those of the text part
 * of one that reads images. */
const char *hf_read_quantization(struct ifl_hf_config *config, bool is_part, struct model *model);
/* True if the name is an algorithm of NVIDIA's Model Optimizer; false for NULL. */
bool hf_knows_algorithm(const char *name);
/* Writes all these algorithms, separated by commas; 256 bytes suffice. */
void hf_list_algorithms(char *text, size_t n_bytes);
/* Puts the object of a hf_quant_config.json beside config.json where quantization_config is
 * missing. */
void hf_add_quantization_beside(struct ifl_hf_config *config);
/* plain_frac, by the modules that a quantization_config excludes, or does not target. Of the
 * experts of a layer the first stands for all. */
void hf_read_plain_parts(struct ifl_hf_config *config, const struct json_t *object, bool is_part,
                         struct model *model);

/* vLLM keeps states in the model's dtype unless mamba_ssm_dtype, or mamba_ssm_cache_dtype, names
 * another. */
void hf_read_state_bytes(struct ifl_hf_config *config, struct model *model);
/* The image encoder of a checkpoint of that model_type, from its vision_config, borrowed: NULL or
 * of a family without formulas is VISION_UNKNOWN. Needs the text part, which is read before. */
void hf_read_vision(struct ifl_hf_config *config, const char *model_type, struct json_t *object,
                    struct model *model);

/* Replaces the object of a model that reads images or sound by its text part, a decoder of a known
 * kind with the outer file's dtype. Returns the outer model_type; NULL: it is all text, or there is
 * an error. */
const char *hf_take_text_part(struct ifl_hf_config *config);
/* True if the model_type is read, or refused by what it has. */
bool hf_knows_type(const char *type);
/* What is expected in place of a type that is known and refused; NULL: it is not. */
const char *hf_refused(const char *type);
/* Returns the i-th outer model_type; NULL after the last. */
const char *hf_outer_type(size_t i);

/* ---- an architecture each ---- */

void hf_read_deepseek(struct ifl_hf_config *config, struct model *model);
void hf_read_glm4_moe(struct ifl_hf_config *config, struct model *model);

/* Dense: huggingface_dense.c, huggingface_classic.c. */
void hf_read_cohere(struct ifl_hf_config *config, struct model *model);
void hf_read_cohere2(struct ifl_hf_config *config, struct model *model);
void hf_read_glm(struct ifl_hf_config *config, struct model *model);
void hf_read_glm4(struct ifl_hf_config *config, struct model *model);
void hf_read_chatglm(struct ifl_hf_config *config, struct model *model);
void hf_read_internlm2(struct ifl_hf_config *config, struct model *model);
void hf_read_internlm3(struct ifl_hf_config *config, struct model *model);
void hf_read_exaone(struct ifl_hf_config *config, struct model *model);
void hf_read_exaone4(struct ifl_hf_config *config, struct model *model);
void hf_read_hunyuan(struct ifl_hf_config *config, struct model *model);
void hf_read_ernie4_5(struct ifl_hf_config *config, struct model *model);
void hf_read_mimo(struct ifl_hf_config *config, struct model *model);
void hf_read_ministral3(struct ifl_hf_config *config, struct model *model);
void hf_read_stablelm(struct ifl_hf_config *config, struct model *model);
void hf_read_starcoder2(struct ifl_hf_config *config, struct model *model);
void hf_read_gpt_neox(struct ifl_hf_config *config, struct model *model);
void hf_read_gpt_bigcode(struct ifl_hf_config *config, struct model *model);
void hf_read_falcon(struct ifl_hf_config *config, struct model *model);
void hf_read_nemotron(struct ifl_hf_config *config, struct model *model);
void hf_read_phi(struct ifl_hf_config *config, struct model *model);
/* With experts: huggingface_experts.c. */
void hf_read_qwen2_moe(struct ifl_hf_config *config, struct model *model);
void hf_read_phimoe(struct ifl_hf_config *config, struct model *model);
void hf_read_hunyuan_moe(struct ifl_hf_config *config, struct model *model);
void hf_read_olmoe(struct ifl_hf_config *config, struct model *model);
void hf_read_granitemoe(struct ifl_hf_config *config, struct model *model);
void hf_read_bailing(struct ifl_hf_config *config, struct model *model);
void hf_read_dbrx(struct ifl_hf_config *config, struct model *model);
void hf_read_glm4v_moe(struct ifl_hf_config *config, struct model *model);
void hf_read_glm4_moe_lite(struct ifl_hf_config *config, struct model *model);
void hf_read_longcat(struct ifl_hf_config *config, struct model *model);
void hf_read_step3(struct ifl_hf_config *config, struct model *model);

void hf_read_gpt_oss(struct ifl_hf_config *config, struct model *model);
void hf_read_gemma(struct ifl_hf_config *config, struct model *model);
void hf_read_gemma2(struct ifl_hf_config *config, struct model *model);
void hf_read_gemma3(struct ifl_hf_config *config, struct model *model);
void hf_read_olmo2(struct ifl_hf_config *config, struct model *model);
void hf_read_olmo3(struct ifl_hf_config *config, struct model *model);
void hf_read_llama4(struct ifl_hf_config *config, struct model *model);
/* Qwen3-Next, and Qwen3.5 with experts; without. */
void hf_read_qwen3_next(struct ifl_hf_config *config, struct model *model);
void hf_read_qwen3_5(struct ifl_hf_config *config, struct model *model);
/* Granite 4.0 H; Nemotron-H, Nemotron Nano 2 and Nemotron 3 Nano. */
void hf_read_bamba(struct ifl_hf_config *config, struct model *model);
void hf_read_granite_hybrid(struct ifl_hf_config *config, struct model *model);
void hf_read_nemotron_h(struct ifl_hf_config *config, struct model *model);
void hf_read_falcon_h1(struct ifl_hf_config *config, struct model *model);
/* With states of other rules: huggingface_states.c. */
void hf_read_lfm2(struct ifl_hf_config *config, struct model *model);
void hf_read_lfm2_moe(struct ifl_hf_config *config, struct model *model);
void hf_read_minimax(struct ifl_hf_config *config, struct model *model);
void hf_read_jamba(struct ifl_hf_config *config, struct model *model);
void hf_read_kimi_linear(struct ifl_hf_config *config, struct model *model);

#endif
