/* A checkpoint's JSON files: config.json, in which Hugging Face transformers describes a model, and
 * the index of its shards.
 *
 * Cost models and engines share this reader: cost models need the shapes, an engine also needs how
 * to compute with them. Keys and defaults are those of the configuration classes of transformers,
 * versions 4 and 5; if these differ, those of 5. */
#ifndef INFLIGHT_HUGGINGFACE_H
#define INFLIGHT_HUGGINGFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/engine.h"
#include "inflight/error.h"

struct json_t; /* of jansson */

/* Reads a regular file of at most max_bytes; the caller releases the document with json_decref. It
 * is an object or a list: the caller checks which. Returns NULL after an error, which has one line
 * with its place in the file: IFL_E_INPUT, also for a file that cannot be read, or IFL_E_NOMEM. A
 * repeated key is an error. */
struct json_t *ifl_hf_document(const char *path, int64_t max_bytes, struct ifl_error *error);

/* ---- a configuration, key by key ---- */

/* The first error is kept in `code` and `error`; later reads do nothing, and return their
 * `otherwise`. A caller may therefore read all keys and check `code` once, at the end: it is 0, or
 * negative. */
struct ifl_hf_config {
    struct json_t *root; /* an object; after an error of ifl_hf_open perhaps not, or NULL */
    const char *path;    /* borrowed */
    struct ifl_error *error;
    int code;
};

/* Reads a config.json, of at most 1 MiB, into *config, which need not be zeroed. Returns its code:
 * 0, or that of ifl_hf_document; a document that is no object is IFL_E_INPUT. The caller closes it,
 * also after an error. `path` and `error` are borrowed until then. */
int ifl_hf_open(const char *path, struct ifl_hf_config *config, struct ifl_error *error);
/* Releases the document, and with it all values and texts that were borrowed. A second call does
 * nothing. */
void ifl_hf_close(struct ifl_hf_config *config);

/* The value of a key, borrowed from the object. NULL if the key is missing or null, or if `object`
 * is no JSON object. */
const struct json_t *ifl_hf_value(const struct json_t *object, const char *key);

/* Sets the error IFL_E_INPUT "KEY is VALUE, expected EXPECTED", unless there is one already. If
 * `value` is NULL, the error says that KEY is missing. */
void ifl_hf_fail(struct ifl_hf_config *config, const char *key, const struct json_t *value,
                 const char *expected);

enum { IFL_HF_REQUIRED = -1 };

/* The whole number from 1 to max of a key of the root. If the key is missing or null, the result is
 * `otherwise`, which may be any number, such as 0; if it is IFL_HF_REQUIRED, that is an error. Any
 * other value is an error. The result of an error is 0. */
int32_t ifl_hf_count(struct ifl_hf_config *config, const char *key, int32_t otherwise, int32_t max);
/* The same for true or false; `otherwise` if the key is missing or null. Any other value is an
 * error, and the result is false. */
bool ifl_hf_flag(struct ifl_hf_config *config, const char *key, bool otherwise);
/* The text of a key, borrowed from the object. Empty if the key is missing or has no text, or if
 * `object` is no JSON object; never NULL. */
const char *ifl_hf_text(const struct json_t *object, const char *key);

/* The number of layers to which the list layer_types of the root gives the type `other`, such as
 * "sliding_attention"; `otherwise` if the key is missing or null. An error, and 0, unless the list
 * has n_layers types, each of them `other` or full_attention. The older names attention and mamba
 * stand for full_attention and linear_attention, as in transformers 5 (configuration_utils.py,
 * remap_legacy_layer_types). */
int32_t ifl_hf_layers(struct ifl_hf_config *config, const char *other, int32_t n_layers,
                      int32_t otherwise);

/* ---- decoders of Llama's kind: RMSNorm, rotary positions, gated MLPs ---- */

struct ifl_hf_decoder {
    struct ifl_engine_model model; /* n_kv_heads 0: as many as query heads; d_head 0: d_model
                                      shared among them */
    int32_t window_tokens;         /* attention of the layers below; 0: the file sets no window */
    int32_t n_window_layers;       /* layers with a window, even if its length is not set */
};

/* Fills in *decoder from a configuration that ifl_hf_open has read without an error. Errors are
 * kept in config->code; *decoder is then incomplete. model_type must be llama, mistral, mixtral,
 * phi3, qwen2, qwen3 or qwen3_moe: check it before with ifl_hf_text, because any other aborts. Of a
 * model with experts only the keys of a dense model are read. */
void ifl_hf_read_decoder(struct ifl_hf_config *config, struct ifl_hf_decoder *decoder);

#endif
