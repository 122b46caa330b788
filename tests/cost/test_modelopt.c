/* A checkpoint whose quantisation is in the file beside its config.json. The layouts are those of
 * NVIDIA's checkpoints: a producer, and the object quantization. */
#include <sys/stat.h>

#include "loading.h"

#define SHAPE                                                                                      \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 4,"                   \
    " \"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 1000,"               \
    " \"max_position_embeddings\": 128"
#define PRODUCER "{\"producer\": {\"name\": \"modelopt\", \"version\": \"0.23.0\"}, "

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void remove_file(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    remove(path);
}

/* The model of a folder with these two files. */
static int load_folder(const char *config, const char *beside, struct model *model,
                       struct ifl_error *error)
{
    char folder[] = "/tmp/inflight-modelopt-XXXXXX", path[64];
    cr_assert_not_null(mkdtemp(folder));
    write_file(folder, "config.json", config);
    write_file(folder, "hf_quant_config.json", beside);
    snprintf(path, sizeof path, "%s/config.json", folder);
    *error = (struct ifl_error){0};
    const int code = model_load(path, model, error);
    remove_file(folder, "config.json");
    remove_file(folder, "hf_quant_config.json");
    remove(folder);
    return code;
}

static struct model load(const char *config, const char *beside)
{
    struct model model;
    struct ifl_error error;
    cr_assert_eq(load_folder(config, beside, &model, &error), 0, "%s: %s", beside, error.text);
    return model;
}

Test(modelopt, the_file_beside_says_the_format)
{
    struct model model = load(SHAPE "}", PRODUCER
                              "\"quantization\": {\"quant_algo\": \"FP8\", \"kv_cache_quant_algo\":"
                              " \"FP8\", \"exclude_modules\": [\"lm_head\"]}}");
    cr_expect_eq(model.quantization, MODEL_FP8);
    cr_expect_not_null(strstr(model.about, "weights in fp8"), "%s", model.about);
    model =
        load(SHAPE "}", PRODUCER "\"quantization\": {\"quant_algo\": \"NVFP4\", \"group_size\": 16,"
                                 " \"exclude_modules\": [\"model.layers.0.self_attn*\"]}}");
    cr_expect_eq(model.quantization, MODEL_NVFP4);
    cr_expect_float_eq(model.plain_frac[MODEL_PART_ATTENTION], 0.25, 1e-12); /* a layer of four */
    model = load(SHAPE "}", PRODUCER "\"quantization\": {\"quant_algo\": null,"
                                     " \"kv_cache_quant_algo\": \"FP8\"}}");
    cr_expect_eq(model.quantization, MODEL_PLAIN);
}

Test(modelopt, config_json_goes_first)
{
    const struct model model =
        load(SHAPE ", \"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4}}",
             PRODUCER "\"quantization\": {\"quant_algo\": \"FP8\"}}");
    cr_expect_eq(model.quantization, MODEL_INT4);
}

static void expect_refused(const char *beside, const char *words)
{
    struct model model;
    struct ifl_error error;
    cr_expect_eq(load_folder(SHAPE "}", beside, &model, &error), IFL_E_INPUT, "%s", beside);
    cr_expect_not_null(strstr(error.file, "/hf_quant_config.json"), "%s", error.file);
    cr_expect_not_null(strstr(error.text, words), "%s: %s", beside, error.text);
    cr_expect_lt(strlen(error.text), sizeof error.text - 1, "%s", error.text);
}

Test(modelopt, what_it_cannot_say_is_refused)
{
    expect_refused(PRODUCER "\"quantization\": {\"quant_algo\": \"MIXED_PRECISION\"}}",
                   "quant_algo is none that is modelled");
    expect_refused(PRODUCER "\"quantization\": {\"quant_algo\": 8}}", "NVFP4_AWQ or null");
    expect_refused(PRODUCER "\"quantization\": []}", "the object quantization is missing");
    expect_refused("[]", "the object quantization is missing");
    expect_refused("{\"quantization\": ", "expected a JSON object");
}
