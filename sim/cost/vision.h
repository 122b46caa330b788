/* The image encoder of a vision-language checkpoint, as far as it takes memory: a Vision
 * Transformer (Dosovitskiy et al. 2020, arXiv 2010.11929) and the projector that makes embeddings
 * of the decoder out of its patches. Its time is not modelled.
 *
 * Shapes are those of vision_config in a checkpoint's config.json; modules and which of them are
 * divided among the ranks of a tensor-parallel group are those of vLLM 0.11
 * (vllm/model_executor/models). Learned numbers, with d = d_model, f = d_ffn, o = d_out, p = patch,
 * m = merge, c = m^2 d; g is 3 for a gated MLP and 2 for a plain one:
 *
 *     a layer      4 d^2 + g d f, two norms, biases (none with Pixtral)
 *     embedding    3 frames p^2 d, a bias (Qwen3-VL, SigLIP), positions d
 *     projector    Qwen-VL: (1 + deepstack) of c^2 + c + c o + o, and a norm
 *                  Gemma 3 (SigLIP): d o and two norms
 *                  Pixtral in Mistral Small 3: c d + d o + o^2 and two norms
 *
 * Divided are layers and projector, but not norms, biases behind a reduction, the embedding of
 * Qwen-VL and Pixtral, Gemma's projector, and Pixtral's merge of patches (c d). Quantised
 * checkpoints leave all of it in 16 bits. */
#ifndef SIM_COST_VISION_H
#define SIM_COST_VISION_H

#include <stdbool.h>
#include <stdint.h>

enum vision_kind {
    VISION_NONE,
    VISION_UNKNOWN, /* there is an encoder; its shapes are not read */
    VISION_QWEN2,
    VISION_QWEN2_5,
    VISION_QWEN3,
    VISION_SIGLIP,
    VISION_PIXTRAL
};

/* What a config.json says of the encoder, in the words that servers look for. */
struct vision_words {
    char model_type[32];   /* of the whole checkpoint; empty: there is no config.json */
    bool has_config;       /* there is a vision_config */
    int32_t layers, width; /* its num_hidden_layers and hidden_size, whatever they are in this
                              family; 0: it has none */
};

struct model_vision {
    int32_t kind; /* enum vision_kind */
    int32_t layers, d_model, d_ffn, d_out;
    int32_t patch;        /* a patch's side, in pixels */
    int32_t frames;       /* of a video, that a patch spans; 1 without videos */
    int32_t merge;        /* patches of a side that become one embedding */
    int32_t positions;    /* rows of a learned table; 0: none */
    int32_t deepstack;    /* layers of the encoder that have a projector of their own */
    int32_t image_tokens; /* embeddings of the largest image */
    /* Rows that vLLM's multimodal rotary embedding has for each position of the text (mrope.py): 4;
     * 0: positions have one number, and the table counts nowhere. */
    int32_t rotary_rows;
    struct vision_words words;
};

static inline bool vision_is_known(const struct model_vision *vision)
{
    return vision->kind > VISION_UNKNOWN;
}

int64_t vision_parameters(const struct model_vision *vision);
/* Bytes of a rank's part, with element_bytes each. */
int64_t vision_weight_bytes(const struct model_vision *vision, int32_t element_bytes,
                            int32_t tensor_parallel);
/* Numbers of an embedding as it is kept: d_out for each projector. */
int64_t vision_embedding_columns(const struct model_vision *vision);
/* Pixels that the encoder is given for one embedding, in numbers. */
int64_t vision_input_columns(const struct model_vision *vision);
/* How attention of Qwen-VL rotates queries and keys, and what is alive then, in widths of the
 * hidden state: 2 of that and its norm, 3 of the product of queries, keys and values, and
 *
 *     apart      copies of the three (3), one of them at a time in 32 bits (2 + 2 + 1)
 *     together   those copies, and queries and keys once more (2), in 32 bits (4 + 4 + 2)
 *     packed     queries and keys (2), in 32 bits (4 + 4 + 2)
 *     short      queries and keys before and behind it in 16 bits, and outputs; the source has 12,
 *                a log of 0.23 has 13.0, which counts
 *
 * The first two gather all ranks' products before that (qwen2_5_vl.py, split_qkv). */
enum vision_rotation {
    VISION_ROTATES_SHORT,    /* from 0.13 on */
    VISION_ROTATES_PACKED,   /* 0.11.1 to 0.12 */
    VISION_ROTATES_TOGETHER, /* 0.11.0 */
    VISION_ROTATES_APART     /* up to 0.10.2 */
};
/* The widest place of a layer for one embedding, a rank's part: that, or hidden state and norm
 * beside the columns of the MLP. */
double vision_layer_columns(const struct model_vision *vision, enum vision_rotation rotation,
                            int32_t tensor_parallel);

#endif
