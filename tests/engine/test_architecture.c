/* config.json as transformers reads it. Expectations were read off AutoConfig.from_pretrained of
 * transformers 4.57.1, 5.0.0 and 5.23.0 for exactly the texts below; if they differ, of 5. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "architecture.h"

static char dir[64], path[96];
static struct ifl_error error;

static void make_folder(void)
{
    snprintf(dir, sizeof dir, "/tmp/inflight-architecture-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/config.json", dir);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(dir);
}

static int read_text(const char *text, struct architecture *a)
{
    make_folder();
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    const int rc = architecture_read(dir, NULL, a, &error);
    remove_folder();
    return rc;
}

#define BASE                                                                                       \
    "\"num_hidden_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 4,"                   \
    "\"num_key_value_heads\": 2, \"intermediate_size\": 96, \"vocab_size\": 100,"                  \
    "\"max_position_embeddings\": 64"
#define FACTORS                                                                                    \
    "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0,"                        \
    "\"original_max_position_embeddings\": 32"
#define LLAMA3 "{\"rope_type\": \"llama3\", " FACTORS "}"
#define TYPES(first, second)                                                                       \
    ", \"layer_types\": [\"" first "_attention\", \"" second "_attention\"]"

static struct architecture read_model(const char *type, const char *more)
{
    struct architecture a;
    char text[2048];
    snprintf(text, sizeof text, "{\"model_type\": \"%s\", " BASE "%s}", type, more);
    cr_assert_eq(read_text(text, &a), 0, "%s: %s", text, error.text);
    return a;
}

static void expect_refused(const char *type, const char *more, const char *reason)
{
    struct architecture a;
    char text[2048];
    snprintf(text, sizeof text, "{\"model_type\": \"%s\", " BASE "%s}", type, more);
    cr_expect_eq(read_text(text, &a), IFL_E_INPUT, "%s", text);
    cr_expect_str_eq(error.file, path);
    cr_expect(strstr(error.text, reason) && !strchr(error.text, '\n'), "%s: %s", text, error.text);
}

/* ---- windows ---- */

static void expect_window(const char *type, const char *more, int32_t window_tokens)
{
    const struct architecture a = read_model(type, more);
    cr_expect_eq(a.window_tokens, window_tokens, "%s%s: %d, expected %d", type, more,
                 a.window_tokens, window_tokens);
}

Test(architecture, a_mistral_has_a_window_unless_it_says_none)
{
    expect_window("mistral", "", 4096);
    expect_window("mistral", ", \"sliding_window\": null", 0);
    expect_window("mistral", ", \"sliding_window\": 8", 8);
    expect_window("llama", ", \"sliding_window\": 8", 0);
}

#define USES ", \"use_sliding_window\": true"

Test(architecture, layer_types_say_where_a_window_is)
{
    expect_window("mistral", ", \"sliding_window\": 8" TYPES("full", "full"), 0);
    expect_window("mistral", ", \"sliding_window\": 8" TYPES("sliding", "sliding"), 8);
    expect_window("mistral", TYPES("sliding", "sliding"), 4096);
    expect_window("mistral", ", \"layer_types\": null", 4096);
    expect_window("qwen2", ", \"sliding_window\": 8" USES TYPES("full", "full"), 0);
    expect_window("qwen3", ", \"sliding_window\": 8" USES TYPES("sliding", "sliding"), 8);
    expect_window("qwen2", ", \"sliding_window\": 8" TYPES("full", "full"), 0);
    expect_refused("mistral", TYPES("sliding", "full"), "in some only it is not supported");
    expect_refused("qwen2", USES TYPES("full", "sliding"), "in some only it is not supported");
    expect_refused("qwen2", TYPES("sliding", "sliding"), "where no window is set");
    expect_refused("qwen3", TYPES("linear", "full"), "layer_types[0] is \"linear_attention\"");
    expect_refused("qwen3", ", \"layer_types\": [\"full_attention\"]", "has 1 types, expected 2");
    expect_refused("mistral", ", \"layer_types\": \"full_attention\"", "layer_types is");
}

Test(architecture, the_first_layers_of_a_qwen_have_no_window)
{
    expect_window("qwen2", ", \"sliding_window\": 8", 0);
    expect_window("qwen2", ", \"sliding_window\": 8" USES, 0); /* max_window_layers is 28 */
    expect_window("qwen2", ", \"sliding_window\": 8" USES ", \"max_window_layers\": 2", 0);
    expect_window("qwen3", ", \"sliding_window\": 8" USES ", \"max_window_layers\": 0", 8);
    expect_window("qwen3", USES ", \"max_window_layers\": 0", 4096);
    expect_refused("qwen2", USES ", \"max_window_layers\": 1", "max_window_layers is 1");
    expect_refused("qwen2", USES ", \"max_window_layers\": -1", "max_window_layers is -1");
}

/* ---- rotary positions ---- */

static void expect_rope(const char *more, double theta, double factor)
{
    const struct architecture a = read_model("llama", more);
    cr_expect(a.rope_theta == theta && a.scaling.factor == factor,
              "%s: theta %g, factor %g, expected %g, %g", more, a.rope_theta, a.scaling.factor,
              theta, factor);
}

#define DEFAULT "{\"rope_type\": \"default\", \"rope_theta\": 500.0}"

Test(architecture, rope_scaling_takes_the_place_of_rope_parameters)
{
    expect_rope("", 10000, 0);
    expect_rope(", \"rope_theta\": 500.0, \"rope_scaling\": " LLAMA3, 500, 8);
    expect_rope(", \"rope_scaling\": " LLAMA3 ", \"rope_parameters\": " DEFAULT, 10000, 8);
    expect_rope(", \"rope_scaling\": " LLAMA3 ", \"rope_theta\": 700.0, \"rope_parameters\": "
                "{\"rope_type\": \"default\"}",
                700, 8);
    expect_rope(", \"rope_scaling\": {\"rope_type\": \"default\"}, \"rope_parameters\": " LLAMA3,
                10000, 0);
    expect_rope(", \"rope_scaling\": {}, \"rope_parameters\": " LLAMA3, 10000, 8);
}

Test(architecture, the_theta_of_a_scaling_goes_first)
{
    expect_rope(", \"rope_scaling\": " DEFAULT, 500, 0);
    expect_rope(", \"rope_theta\": 900.0, \"rope_scaling\": " DEFAULT, 500, 0);
    expect_rope(", \"rope_theta\": 900.0, \"rope_parameters\": " DEFAULT, 500, 0);
    expect_rope(", \"rope_theta\": 900.0, \"rope_parameters\": {\"rope_type\": \"default\"}", 900,
                0);
    expect_rope(", \"rope_theta\": 900.0, \"rope_parameters\": {}", 900, 0);
    expect_rope(", \"rope_scaling\": {\"type\": \"llama3\", " FACTORS "}", 10000, 8);
}

Test(architecture, positions_of_another_kind_are_refused)
{
    expect_refused("llama", ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}",
                   "type is \"linear\", expected \"default\" or \"llama3\"");
    expect_refused("llama", ", \"rope_parameters\": {\"full_attention\": " DEFAULT "}",
                   "one set of parameters for all layers");
    expect_refused("llama", ", \"rope_scaling\": 7", "rope_scaling is 7, expected an object");
    expect_refused("llama", ", \"partial_rotary_factor\": 0.5", "partial_rotary_factor is 0.5");
    expect_refused("llama", ", \"rope_parameters\": {\"partial_rotary_factor\": 0.5}",
                   "partial_rotary_factor is 0.5");
}

/* ---- activations and heads ---- */

Test(architecture, swish_is_silu)
{
    read_model("llama", ", \"hidden_act\": \"swish\"");
    read_model("llama", ", \"hidden_act\": \"silu\"");
    expect_refused("llama", ", \"hidden_act\": \"gelu\"", "hidden_act is \"gelu\", expected");
    expect_refused("llama", ", \"hidden_act\": 7", "hidden_act is 7, expected");
    expect_refused("llama", ", \"hidden_act\": null", "hidden_act is null, expected");
}

static void expect_heads(const char *type, const char *more, int32_t n_kv_heads, int32_t d_head)
{
    struct architecture a;
    char text[2048];
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"num_hidden_layers\": 2, \"hidden_size\": 640,"
             "\"num_attention_heads\": 64, \"intermediate_size\": 96, \"vocab_size\": 100%s}",
             type, more);
    cr_assert_eq(read_text(text, &a), 0, "%s: %s", text, error.text);
    cr_expect(a.model.n_kv_heads == n_kv_heads && a.model.d_head == d_head, "%s: %d, %d", text,
              a.model.n_kv_heads, a.model.d_head);
}

Test(architecture, heads_that_are_left_out)
{
    expect_heads("llama", "", 64, 10);
    expect_heads("mistral", "", 8, 10);
    expect_heads("mistral", ", \"num_key_value_heads\": null, \"head_dim\": null", 64, 10);
    expect_heads("qwen2", "", 32, 10);
    expect_heads("qwen3", "", 32, 128);
    expect_heads("qwen3", ", \"num_key_value_heads\": 4, \"head_dim\": 16", 4, 16);
}

/* ---- missing and broken files ---- */

Test(architecture, a_pipe_is_not_waited_for, .timeout = 10)
{
    struct architecture a;
    make_folder();
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(architecture_read(dir, NULL, &a, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "not a regular file, expected a JSON object");
    cr_expect_str_eq(error.file, path);
    remove_folder();
}

Test(architecture, a_huge_file_is_not_read, .timeout = 10)
{
    struct architecture a;
    make_folder();
    FILE *file = fopen(path, "w");
    cr_assert(file && fclose(file) == 0);
    cr_assert_eq(truncate(path, (off_t)1 << 40), 0);
    cr_expect_eq(architecture_read(dir, NULL, &a, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "expected a JSON object of at most 8388608"), "%s",
                       error.text);
    remove_folder();
}
