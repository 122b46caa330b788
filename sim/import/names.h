/* GPUs and models as servers and drivers call them, and the profiles that come with inflight. */
#ifndef SIM_IMPORT_NAMES_H
#define SIM_IMPORT_NAMES_H

#include <stdbool.h>

struct gpu_name {
    const char *name;    /* as the driver says it, blanks, dashes and underscores alike */
    const char *profile; /* in configs/hardware; NULL: there is none */
    double memory_gib;
    double smi_mib; /* memory.total of nvidia-smi */
};

/* Returns the name, as in the table, of the GPU that a line names; NULL: none. */
const char *gpu_name_in(const char *line);
/* Finds a GPU by the driver's name or the profile's; NULL if it is not in the table. */
const struct gpu_name *gpu_name_find(const char *name);
/* The only GPU with that word in its name, as "L4" is; NULL if there is none, or several ("H100").
 */
const struct gpu_name *gpu_name_only(const char *word);
/* True if its name has the model of a GPU in it ("A100"), in capitals or not. */
bool gpu_name_has(const struct gpu_name *gpu, const char *model);

/* The profile in configs/models of a model by its name, its path or the name of its checkpoint
 * ("meta-llama/Llama-3.1-8B-Instruct"); NULL: none. */
const char *model_profile(const char *name);
/* Returns the most tokens of a request that this checkpoint allows (max_position_embeddings), if
 * they differ from those of the profile; otherwise 0. */
long long model_checkpoint_len(const char *name);
/* True if the name begins as that of a profile's checkpoint and has another size behind it
 * ("deepseek-r1-14b"): model_profile has none for it. */
bool model_has_other_size(const char *name);
/* True if two names cannot be of one model: they find different profiles, or have different sizes.
 * Two paths may be of one. */
bool model_names_contradict(const char *a, const char *b);
/* True if a length stands behind the checkpoint's name ("Llama-2-7B-32K"): its thousands, as
 * written, and its tokens, 0 where the word does not tell them exactly ("100k"). */
bool model_named_len(const char *name, double *thousands, long long *n_tokens);
/* Returns the format of the weights by the checkpoint's name: "fp8", "int8", "int4", "nvfp4",
 * "mxfp4" or "fp4", "" if they are quantised in another way, NULL if the name does not say. */
const char *model_width(const char *name);
/* True if the profile has latent attention. */
bool model_is_latent_profile(const char *profile);
/* An image encoder, by a part of a checkpoint's name. */
struct encoder_name {
    const char *part;
    const char *model_type;      /* of the checkpoint's config.json; NULL: not known */
    long long n_layers, n_width; /* num_hidden_layers and hidden_size of its vision_config; 0: it
                                    has none */
};
/* Finds the encoder of a checkpoint that has one, by its name: the profiles of configs/models are
 * text parts. NULL: none is known. */
const struct encoder_name *model_encoder(const char *name);
/* The checkpoint that a profile of configs/models describes; NULL if none is known. */
const char *model_checkpoint(const char *profile);

#endif
