/* Reads hf_quant_config.json, in which NVIDIA's Model Optimizer describes how a checkpoint is
 * quantised. Newer releases write the same into config.json, too. vLLM reads this file if
 * config.json has no such section (vllm/transformers_utils/config.py, get_config). */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cost/document.h"
#include "cost/huggingface_kinds.h"
#include "inflight/error.h"
#include "inflight/inputs.h"

enum { MOST_BYTES = 8 << 20 };

/* The path of that file in the folder of config.json. False: it is too long. */
static bool path_beside(const char *path, char beside[4096])
{
    return snprintf(beside, 4096, "%.*shf_quant_config.json", document_folder_bytes(path), path) <
           4096;
}

static void fail(struct ifl_hf_config *config, const char *path, const char *found)
{
    char algorithms[256];
    hf_list_algorithms(algorithms, sizeof algorithms);
    config->code = ifl_fail_at(
        config->error, path, 0, 0,
        "%s, expected \"quantization\": {\"quant_algo\": ...} with %s or null", found, algorithms);
}

/* A file that quantises K/V alone has no algorithm for weights. */
static void take(struct ifl_hf_config *config, const char *path, const json_t *quantization)
{
    const json_t *algorithm = ifl_hf_value(quantization, "quant_algo");
    if (!json_is_object(quantization))
        fail(config, path, "the object quantization is missing");
    else if (algorithm && !hf_knows_algorithm(json_string_value(algorithm)))
        fail(config, path, "quant_algo is none that is modelled");
    if (config->code || !algorithm)
        return;
    json_t *object = json_copy((json_t *)quantization); /* its values are shared */
    if (json_object_set_new(object, "quant_method", json_string("modelopt")) < 0 ||
        json_object_set_new(config->root, "quantization_config", object) < 0)
        config->code = ifl_fail_nomem(config->error);
}

void hf_add_quantization_beside(struct ifl_hf_config *config)
{
    char path[4096];
    if (config->code || ifl_hf_value(config->root, "quantization_config") ||
        ifl_hf_value(config->root, "compression_config") || !path_beside(config->path, path) ||
        access(path, F_OK) != 0)
        return;
    ifl_input_note(path);
    json_t *root = ifl_hf_document(path, MOST_BYTES, config->error);
    if (root)
        take(config, path, ifl_hf_value(root, "quantization"));
    else
        config->code = config->error->code;
    json_decref(root);
}
