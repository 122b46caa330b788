/* A checkpoint's JSON files: config.json, in which Hugging Face transformers describes a model, and
 * the index of its shards.
 *
 * One reader for both that need one: cost models want the shapes, an engine also wants what it
 * computes with them. Keys and defaults are those of the configuration classes of transformers,
 * versions 4 and 5; where these differ, those of 5. */
#ifndef INFLIGHT_HUGGINGFACE_H
#define INFLIGHT_HUGGINGFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/engine.h"
#include "inflight/error.h"

struct json_t; /* of jansson */

/* The document in a regular file of at most max_bytes; the caller releases it. On an error, NULL
 * and one line with its place in the file. A repeated key is an error. */
struct json_t *ifl_hf_document(const char *path, int64_t max_bytes, struct ifl_error *error);

/* ---- a configuration, key by key ---- */

/* The first error is kept in `code` and `error`; reads after it do nothing, and return
 * their `otherwise`. */
struct ifl_hf_config {
    struct json_t *root; /* an object */
    const char *path;    /* borrowed */
    struct ifl_error *error;
    int code;
};

/* Reads a config.json, of at most 1 MiB; the caller closes it, also after an error. */
int ifl_hf_open(const char *path, struct ifl_hf_config *config, struct ifl_error *error);
void ifl_hf_close(struct ifl_hf_config *config);

/* The value of a key, borrowed from the object. NULL where the key is missing or null, or where
 * `object` is no JSON object. */
const struct json_t *ifl_hf_value(const struct json_t *object, const char *key);

/* "KEY is VALUE, expected ..."; without a value, "KEY is missing". */
void ifl_hf_fail(struct ifl_hf_config *config, const char *key, const struct json_t *value,
                 const char *expected);

enum { IFL_HF_REQUIRED = -1 };

/* A whole number from 1 to max. Where the key is missing or null: `otherwise`, which may be any
 * number, such as 0; if it is IFL_HF_REQUIRED, an error. Any other value is an error. The result of
 * an error is 0. */
int32_t ifl_hf_count(struct ifl_hf_config *config, const char *key, int32_t otherwise, int32_t max);
/* True or false; `otherwise` where the key is missing or null. Any other value is an error, and the
 * result is false. */
bool ifl_hf_flag(struct ifl_hf_config *config, const char *key, bool otherwise);
/* Empty where the key is missing or holds no text. */
const char *ifl_hf_text(const struct json_t *object, const char *key);

/* ---- decoders of Llama's kind: RMSNorm, rotary positions, gated MLPs ---- */

struct ifl_hf_decoder {
    struct ifl_engine_model model; /* n_kv_heads 0: as many as query heads; d_head 0: d_model
                                      shared among them */
    int32_t window_tokens;         /* attention of the layers below; 0: the file sets no window */
    int32_t n_window_layers;       /* that ask for a window, even where none is set */
};

/* model_type must be llama, mistral, mixtral, phi3, qwen2, qwen3 or qwen3_moe. Of experts only what
 * a dense model has as well is read. */
void ifl_hf_read_decoder(struct ifl_hf_config *config, struct ifl_hf_decoder *decoder);

#endif
