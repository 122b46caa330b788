/* What SGLang takes by default for --mem-fraction-static and --chunked-prefill-size: both go by the
 * GPU's memory, and have changed with its releases (srt/server_args.py; arg_groups/memory_hook.py
 * from 0.5.20 on). In MiB, for tp x pp = r GPUs, tp the first alone:
 *
 *     to 0.4.7   0.88, 0.87, 0.85, 0.81, 0.79 from r = 1, 2, 4, 8, 16 on; from 0.4.6 on GPUs above
 *                80 GiB have more, min(0.88 + 48 GiB x 0.12 / memory, 1 - 18 GiB / memory)
 *     to 0.5.2   1 - reserve / memory, the reserve by the GPU alone: 2.8 + r / 10 GiB below 35 GiB,
 *                9.5 + r / 2 below 90, 12 + r / 2 below 160, else 32
 *     from 0.5.3 1 - reserve / memory, reserve = 512 + 1.5 max(chunk, 2048) + 2 g + 128 r + p,
 *                at least 10 GiB above 60 GiB; g is the most sequences of a captured graph
 *
 * p, from 0.5.10 on, is 8 for each graph of prompts: of up to a chunk of tokens, of up to 2048 with
 * latent K/V (piecewise_cuda_graph_max_tokens). Guesses and attention in parallel add to all of
 * them.
 *
 * Models with images leave memory for their encoder: the share is multiplied by
 *
 *     to 0.4.4.post3  0.95 (model_executor/model_runner.py)
 *     to 0.4.9.post2  0.9; from 0.4.9 on only the default share (server_args.py)
 *     since           0.95 min(max(1 - (n / n0 - 1) / 10, 0.8), 1.05), of the default share
 *                     (adjust_mem_fraction_for_vlm)
 *
 * with n = num_hidden_layers hidden_size^2 of vision_config and n0 = 24 x 1024^2; 24 and 1024 stand
 * for what is missing there. Gemma 3, Llama 4 and Step3-VL are served without images since 0.4.6,
 * unless they are asked for (configs/model_config.py, mm_disabled_models). A server without the
 * encoder keeps the whole share: with --language-only since 0.5.9, if it only decodes since 0.5.17,
 * and with --language-model-only. Beside images there are no graphs of prompts, but for some
 * families. */
#ifndef SIM_IMPORT_SGLANG_MEMORY_H
#define SIM_IMPORT_SGLANG_MEMORY_H

#include <stdbool.h>

/* The oldest and the newest release with a known rule: 0.5.23 is 523. */
enum { SGLANG_OLDEST = 400, SGLANG_NEWEST = 523 };

enum sglang_drafts { SGLANG_NO_DRAFTS, SGLANG_NGRAMS, SGLANG_HEAD, SGLANG_DRAFT_MODEL };
enum sglang_role { SGLANG_BOTH, SGLANG_PREFILL, SGLANG_DECODE };

/* The image encoder of a model. */
struct sglang_images {
    bool is_there;
    bool is_optional;         /* of a family that is served without images by default */
    bool is_asked;            /* --enable-multimodal */
    bool is_left_out;         /* --language-only */
    bool is_off;              /* --language-model-only */
    bool keeps_prompt_graphs; /* of a family that has graphs of prompts beside images */
    bool has_config;          /* config.json has a vision_config */
    long long layers, width;  /* num_hidden_layers and hidden_size there; 0: not said */
};

struct sglang_server {
    int version, post; /* 0.4.4.post4 is 404 and 4 */
    double gpu_mib;    /* memory as nvidia-smi reports it */
    long long tensor, pipeline;
    long long groups;             /* of attention in parallel; 1: none */
    long long chunk_tokens;       /* --chunked-prefill-size; 0: not said, -1: prompts run whole */
    long long max_prefill_tokens; /* replaces chunk_tokens if prompts run whole */
    long long max_seqs;           /* --max-running-requests; 0: not said */
    long long graph_seqs;         /* --cuda-graph-max-bs; 0: not said */
    long long draft_tokens;       /* tokens per request of a verifying step */
    enum sglang_drafts drafts;
    enum sglang_role role;
    bool no_graphs, no_prompt_graphs;
    bool no_fused_prompts; /* something that 0.5.10 to 0.5.13 capture no graphs of prompts with */
    bool deepep;
    bool is_llama_2; /* graphs of prompts of at most 4096 tokens */
    bool is_latent;  /* graphs of prompts of at most 2048 tokens */
    struct sglang_images images;
};

long long sglang_chunk_tokens(const struct sglang_server *server);
/* Without what images take. Rounded to three decimals from 0.4.8 on, as SGLang does. */
double sglang_static_share(const struct sglang_server *server);
/* Returns the part of a share that a model with images keeps; 1: all of it. `is_given`: the share
 * is that of --mem-fraction-static. */
double sglang_image_frac(const struct sglang_server *server, bool is_given);
/* True if that part depends on the size of the encoder. */
bool sglang_images_go_by_size(const struct sglang_server *server);

#endif
