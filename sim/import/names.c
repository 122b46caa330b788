#include "import/names.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "import/name_words.h"

/* Names by the driver (nvidia-smi, and device_name in the names of vLLM's tuned kernels); memory
 * from the data sheets, and what nvidia-smi says of it with current drivers. A longer name stands
 * before one that it begins with: without a profile it keeps another card from having that one's.
 */
static const struct gpu_name gpus[] = {
    {"NVIDIA H100 80GB HBM3", "h100-sxm", 80, 81559},
    {"NVIDIA H100 PCIe", "h100-pcie", 80, 81559},
    {"NVIDIA H100 NVL", "h100-nvl", 94, 95830},
    {"NVIDIA H200 NVL", NULL, 141, 143771},
    {"NVIDIA H200", "h200-sxm", 141, 143771},
    {"NVIDIA H20-3e", NULL, 141, 143771},
    {"NVIDIA H20", "h20-sxm", 96, 97871},
    {"NVIDIA A100-SXM4-80GB", "a100-80gb-sxm", 80, 81920},
    {"NVIDIA A100 80GB PCIe", "a100-80gb-pcie", 80, 81920},
    {"NVIDIA A100-SXM4-40GB", "a100-40gb-sxm", 40, 40960},
    {"NVIDIA A100-PCIE-40GB", "a100-40gb-pcie", 40, 40960},
    {"NVIDIA A10G", "a10g", 24, 23028},
    {"NVIDIA A10", "a10", 24, 23028},
    {"NVIDIA B300", "b300", 288, 275040},
    {"NVIDIA B200", "b200-sxm", 180, 183359},
    {"NVIDIA L40S", "l40s", 48, 46068},
    {"NVIDIA L4", "l4", 24, 23034},
    {"NVIDIA GeForce RTX 4090 D", NULL, 24, 24564},
    {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL, 16, 16376},
    {"NVIDIA GeForce RTX 4090", "rtx-4090", 24, 24564},
    {"NVIDIA GeForce RTX 5090 D v2", NULL, 24, 24463},
    {"NVIDIA GeForce RTX 5090 D", NULL, 32, 32607},
    {"NVIDIA GeForce RTX 5090 Laptop GPU", NULL, 24, 24463},
    {"NVIDIA GeForce RTX 5090", "rtx-5090", 32, 32607},
    {"NVIDIA GeForce RTX 3090 Ti", NULL, 24, 24564},
    {"NVIDIA GeForce RTX 3090", "rtx-3090", 24, 24576},
    {"NVIDIA RTX PRO 6000 Blackwell", "rtx-pro-6000", 96, 97887},
    {"NVIDIA RTX A6000", "rtx-a6000", 48, 49140},
    {"Tesla V100-SXM2-16GB", NULL, 16, 16384},
    {"Tesla V100-SXM2-32GB", NULL, 32, 32768},
    {"Tesla V100S-PCIE-32GB", NULL, 32, 32768},
    {"Tesla T4", NULL, 16, 15360},
};
enum { N_GPUS = sizeof gpus / sizeof *gpus };

static bool is_gap(char c)
{
    return c == ' ' || c == '-' || c == '_';
}

/* How many characters of `text` the name takes; 0: it is another. */
static size_t match(const char *text, const char *name)
{
    size_t n = 0;
    while (name[n] && (text[n] == name[n] || (is_gap(text[n]) && is_gap(name[n]))))
        n++;
    return name[n] || isalnum((unsigned char)text[n]) ? 0 : n;
}

/* "NVIDIA H100 80GB HBM3 MIG 3g.40gb" has a part of the card's memory and SMs. */
static bool is_slice(const char *behind_name)
{
    return is_gap(*behind_name) && strncmp(behind_name + 1, "MIG", 3) == 0 &&
           is_gap(behind_name[4]) && isdigit((unsigned char)behind_name[5]);
}

const char *gpu_name_in(const char *line)
{
    for (const char *at = line; (at = strpbrk(at, "NT")); at++)
        if (strncmp(at, "NVIDIA", 6) == 0 || strncmp(at, "Tesla", 5) == 0)
            for (size_t i = 0; i < N_GPUS; i++)
                if (match(at, gpus[i].name))
                    return is_slice(at + strlen(gpus[i].name)) ? NULL : gpus[i].name;
    return NULL;
}

const struct gpu_name *gpu_name_find(const char *name)
{
    for (size_t i = 0; i < N_GPUS; i++)
        if (strcmp(gpus[i].name, name) == 0 ||
            (gpus[i].profile && strcmp(gpus[i].profile, name) == 0))
            return &gpus[i];
    return NULL;
}

static bool gpu_has_word(const char *name, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = name; n > 0 && *at; at++)
        if (strncasecmp(at, word, n) == 0 && !isalnum((unsigned char)at[n]) &&
            (at == name || is_gap(at[-1])))
            return true;
    return false;
}

const struct gpu_name *gpu_name_only(const char *word)
{
    const struct gpu_name *only = NULL;
    for (size_t i = 0; i < N_GPUS; i++) {
        if (!gpu_has_word(gpus[i].name, word))
            continue;
        if (only)
            return NULL;
        only = &gpus[i];
    }
    return only;
}

bool gpu_name_has(const struct gpu_name *gpu, const char *model)
{
    for (const char *at = gpu->name; *at; at++)
        if (strncasecmp(at, model, strlen(model)) == 0)
            return true;
    return false;
}

/* ---- models ---- */

/* Checkpoints of one shape: the profile's own first. Case does not count; what follows a name
 * behind a dash (-Instruct, -hf, -AWQ) does not change the shape. Without a profile: names that
 * begin as another model's do, of models that are none of configs/models. */
static const struct model_name {
    const char *profile, *checkpoint;
    long long max_tokens; /* max_position_embeddings of its config.json; 0: the profile's */
} models[] = {
    {"llama-3-8b", "meta-llama/Meta-Llama-3-8B", 0},
    {"llama-3-8b", "Meta-Llama-3.1-8B", 131072},
    {"llama-3-8b", "Llama-3-8B", 0},
    {"llama-3-8b", "Llama-3.1-8B", 131072},
    {"llama-3-70b", "meta-llama/Meta-Llama-3-70B", 0},
    {"llama-3-70b", "Llama-3-70B", 0},
    {"llama-3.1-70b", "meta-llama/Llama-3.1-70B", 0},
    {"llama-3.1-70b", "Meta-Llama-3.1-70B", 0},
    {"llama-3.1-70b", "Meta-Llama-3.3-70B", 0}, /* in names of quantised checkpoints */
    {"llama-3.1-70b", "Llama-3.3-70B", 0},
    {"llama-3.2-1b", "meta-llama/Llama-3.2-1B", 0},
    {"llama-3.2-3b", "meta-llama/Llama-3.2-3B", 0},
    {"llama-3.1-405b", "meta-llama/Llama-3.1-405B", 0},
    {"llama-3.1-405b", "Meta-Llama-3.1-405B", 0},
    {"llama-2-7b", "meta-llama/Llama-2-7b-hf", 0},
    {"llama-2-7b", "Llama-2-7b", 0},
    {"llama-2-13b", "meta-llama/Llama-2-13b-hf", 0},
    {"llama-2-13b", "Llama-2-13b", 0},
    {"llama-2-70b", "meta-llama/Llama-2-70b-hf", 0},
    {"llama-2-70b", "Llama-2-70b", 0},
    {"codellama-34b", "codellama/CodeLlama-34b-hf", 0},
    {"codellama-34b", "CodeLlama-34b", 0},
    {"mistral-7b", "mistralai/Mistral-7B-v0.1", 0},
    {"mistral-7b", "Mistral-7B-Instruct-v0.1", 0},
    {"mistral-7b-v0.3", "mistralai/Mistral-7B-Instruct-v0.3", 0},
    {"mistral-7b-v0.3", "Mistral-7B-v0.3", 0},
    {"mistral-nemo-12b", "mistralai/Mistral-Nemo-Instruct-2407", 0},
    {"mistral-nemo-12b", "Mistral-Nemo", 0},
    {"mistral-small-24b", "mistralai/Mistral-Small-24B-Instruct-2501", 0},
    {"mistral-small-24b", "Mistral-Small-24B", 0},
    {"mistral-small-24b", "Mistral-Small-3.1-24B", 131072},
    {"mistral-small-24b", "Mistral-Small-3.2-24B", 131072},
    {"mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1", 0},
    {"mixtral-8x7b", "Mixtral-8x7B", 0},
    {"qwen3-8b", "Qwen/Qwen3-8B", 0},
    {"qwen3-8b", "Qwen3-8B-Base", 32768},
    {"qwen3-8b", "Qwen3-VL-8B", 262144},
    {"qwen3-14b", "Qwen/Qwen3-14B", 0},
    {"qwen3-14b", "Qwen3-14B-Base", 32768},
    {"qwen3-32b", "Qwen/Qwen3-32B", 0},
    {"qwen3-32b", "Qwen3-VL-32B", 262144},
    {"qwen3-0.6b", "Qwen/Qwen3-0.6B", 0},
    {"qwen3-0.6b", "Qwen3-0.6B-Base", 32768},
    {"qwen3-1.7b", "Qwen/Qwen3-1.7B", 0},
    {"qwen3-1.7b", "Qwen3-1.7B-Base", 32768},
    {"qwen3-1.7b", "Qwen3-VL-2B", 262144},
    {"qwen3-4b", "Qwen/Qwen3-4B", 0},
    {"qwen3-4b", "Qwen3-4B-Base", 32768},
    {"qwen3-4b", "Qwen3-4B-Instruct-2507", 262144},
    {"qwen3-4b", "Qwen3-4B-Thinking-2507", 262144},
    {"qwen3-4b", "Qwen3-VL-4B", 262144},
    {"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B", 0},
    {"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B-Instruct", 0},
    {"qwen2.5-1.5b", "Qwen2.5-1.5B", 131072},
    {"qwen2.5-1.5b", "Qwen2.5-Coder-1.5B", 0},
    {"qwen2.5-1.5b", "Qwen2.5-Math-1.5B", 4096},
    {"qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct", 0},
    {"qwen2.5-7b", "Qwen2.5-7B-Instruct-1M", 1010000},
    {"qwen2.5-7b", "Qwen2.5-7B", 131072},
    {"qwen2.5-7b", "Qwen2.5-Coder-7B", 0},
    {"qwen2.5-7b", "Qwen2.5-Math-7B", 4096},
    {"qwen2.5-7b", "Qwen2.5-VL-7B", 128000},
    {"qwen2.5-14b", "Qwen/Qwen2.5-14B-Instruct", 0},
    {"qwen2.5-14b", "Qwen2.5-14B-Instruct-1M", 1010000},
    {"qwen2.5-14b", "Qwen2.5-14B", 131072},
    {"qwen2.5-14b", "Qwen2.5-Coder-14B", 0},
    {"qwen2.5-32b", "Qwen/Qwen2.5-32B-Instruct", 0},
    {"qwen2.5-32b", "Qwen2.5-32B", 131072},
    {"qwen2.5-32b", "Qwen2.5-Coder-32B", 0},
    {"qwen2.5-32b", "QwQ-32B", 40960}, /* 131072 at first (QwenLM/QwQ, issue 26) */
    {"qwen2.5-32b", "QwQ-32B-Preview", 0},
    {"qwen2.5-72b", "Qwen/Qwen2.5-72B-Instruct", 0},
    {"qwen2.5-72b", "Qwen2.5-72B", 131072},
    {"qwen2.5-72b", "Qwen2.5-Math-72B", 4096},
    {"qwen2.5-72b", "Qwen2.5-VL-72B", 128000},
    {"qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", 0},
    {"qwen3-235b-a22b", "Qwen3-235B-A22B-Instruct-2507", 262144},
    {"qwen3-235b-a22b", "Qwen3-235B-A22B-Thinking-2507", 262144},
    {"qwen3-235b-a22b", "Qwen3-VL-235B-A22B", 262144},
    {"qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", 0},
    {"qwen3-30b-a3b", "Qwen3-30B-A3B-Base", 32768},
    {"qwen3-30b-a3b", "Qwen3-30B-A3B-Instruct-2507", 262144},
    {"qwen3-30b-a3b", "Qwen3-30B-A3B-Thinking-2507", 262144},
    {"qwen3-30b-a3b", "Qwen3-Coder-30B-A3B", 262144},
    {"qwen3-30b-a3b", "Qwen3-VL-30B-A3B", 262144},
    {"qwen3-coder-480b-a35b", "Qwen/Qwen3-Coder-480B-A35B-Instruct", 0},
    {"qwen3-coder-480b-a35b", "Qwen3-Coder-480B-A35B", 0},
    {"gpt-oss-120b", "openai/gpt-oss-120b", 0},
    {"gpt-oss-20b", "openai/gpt-oss-20b", 0},
    {"gemma-2-9b", "google/gemma-2-9b", 0},
    {"gemma-2-27b", "google/gemma-2-27b", 0},
    {"gemma-3-4b", "google/gemma-3-4b-it", 0},
    {"gemma-3-4b", "gemma-3-4b", 0},
    {"gemma-3-12b", "google/gemma-3-12b-it", 0},
    {"gemma-3-12b", "gemma-3-12b", 0},
    {"gemma-3-27b", "google/gemma-3-27b-it", 0},
    {"gemma-3-27b", "gemma-3-27b", 0},
    {"llama-4-scout", "meta-llama/Llama-4-Scout-17B-16E", 262144},
    {"llama-4-scout", "Llama-4-Scout-17B-16E-Instruct", 0},
    {"llama-4-maverick", "meta-llama/Llama-4-Maverick-17B-128E", 262144},
    {"llama-4-maverick", "Llama-4-Maverick-17B-128E-Instruct", 0},
    {"qwen3-next-80b-a3b", "Qwen/Qwen3-Next-80B-A3B", 0},
    {"qwen3-next-80b-a3b", "Qwen3-Coder-Next", 0},
    {"nemotron-3-nano-30b-a3b", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 0},
    {"nemotron-3-nano-30b-a3b", "NVIDIA-Nemotron-3-Nano-30B-A3B", 0},
    {"nemotron-nano-9b-v2", "nvidia/NVIDIA-Nemotron-Nano-9B-v2", 0},
    {"granite-4.0-h-small", "ibm-granite/granite-4.0-h-small", 0},
    {"phi-4", "microsoft/phi-4", 0},
    {"phi-4", "Phi-4-reasoning", 32768},
    {NULL, "Phi-4-mini", 0},
    {NULL, "Phi-4-multimodal", 0},
    {"glm-4.5", "zai-org/GLM-4.5", 0},
    {"glm-4.5", "GLM-4.6", 202752},
    {"glm-4.5", "GLM-4.7", 202752},
    {NULL, "GLM-4.7-Flash", 0},
    {"glm-4.5-air", "zai-org/GLM-4.5-Air", 0},
    {"minimax-m2", "MiniMaxAI/MiniMax-M2", 0},
    {"minimax-m2", "MiniMax-M2.7", 204800},
    {"opt-13b", "facebook/opt-13b", 0},
    {"opt-66b", "facebook/opt-66b", 0},
    {"opt-175b", "opt-175b", 0},
    {"bloom-176b", "bigscience/bloom", 0},
    {"yi-34b", "01-ai/Yi-34B", 0},
    {"yi-34b", "Yi-34B-200K", 200000},
    {"deepseek-v3", "deepseek-ai/DeepSeek-V3", 0},
    {"deepseek-v3", "DeepSeek-R1", 0},
    {NULL, "DeepSeek-R1-Distill", 0},
    {"llama-3-8b", "DeepSeek-R1-Distill-Llama-8B", 131072},
    {"llama-3.1-70b", "DeepSeek-R1-Distill-Llama-70B", 0},
    {"deepseek-r1-distill-qwen-1.5b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 0},
    {"qwen2.5-7b", "DeepSeek-R1-Distill-Qwen-7B", 131072},
    {"qwen2.5-14b", "DeepSeek-R1-Distill-Qwen-14B", 131072},
    {"qwen2.5-32b", "DeepSeek-R1-Distill-Qwen-32B", 131072},
    {"qwen3-8b", "DeepSeek-R1-0528-Qwen3-8B", 131072},
    {"deepseek-v3.2", "deepseek-ai/DeepSeek-V3.2", 0},
    {"deepseek-v2", "deepseek-ai/DeepSeek-V2", 0},
    {"deepseek-v2", "DeepSeek-Coder-V2", 0},
    {"deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite", 0},
    {"deepseek-v2-lite", "DeepSeek-Coder-V2-Lite", 0},
    {"kimi-k2", "moonshotai/Kimi-K2-Instruct", 0},
    {"kimi-k2", "Kimi-K2-Base", 0},
    {"kimi-k2", "Kimi-K2-Instruct-0905", 262144},
    {"kimi-k2", "Kimi-K2.5-NVFP4", 262144}, /* Kimi-K2.5 has experts alone in 4 bits */
};
enum { N_MODELS = sizeof models / sizeof *models };

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* "models--meta-llama--Llama-2-7b-hf/snapshots/0e9e39" is the cache of meta-llama/Llama-2-7b-hf. */
static const char *bare_name(const char *name, char text[256])
{
    const char *cached = strstr(name, "models--");
    const char *owner = cached ? strstr(cached + 8, "--") : NULL;
    snprintf(text, 256, "%s", owner ? owner + 2 : name);
    if (owner)
        text[strcspn(text, "/")] = '\0';
    for (size_t n = strlen(text); n > 1 && text[n - 1] == '/'; n--)
        text[n - 1] = '\0';
    return last_part(text);
}

/* Folders write "llama3-70b" for Llama-3-70B, and "qwen2_5_14b" for Qwen2.5-14B. A dash between
 * digits stays: Qwen2-57B is not Qwen2.5-7B, and "33" is not "3.3". */
static bool is_left_out(const char *start, size_t n, char next)
{
    return n > 0 && start[n] == '-' && isalpha((unsigned char)start[n - 1]) &&
           isdigit((unsigned char)start[n + 1]) && next == start[n + 1];
}

static bool is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b) ||
           (a == '_' && (b == '-' || b == '.'));
}

/* How many characters of `name` stand for `start`; 0: it begins otherwise. */
static size_t begins(const char *name, const char *start)
{
    size_t n = 0;
    for (size_t s = 0; start[s]; s++)
        if (is_same(name[n], start[s]))
            n++;
        else if (!is_left_out(start, s, name[n]))
            return 0;
    return !name[n] || strchr("-._", name[n]) ? n : 0;
}

/* Sizes of models that no checkpoint's name tells, in billions of parameters. */
static double size_b(const struct model_name *model)
{
    static const struct {
        const char *profile;
        double params_b;
    } sizes[] = {{"bloom-176b", 176},      {"deepseek-v3", 671}, {"deepseek-v3.2", 671},
                 {"deepseek-v2-lite", 16}, {"deepseek-v2", 236}, {"kimi-k2", 1000},
                 {"mistral-nemo-12b", 12}, {"phi-4", 14},        {"glm-4.5", 355},
                 {"glm-4.5-air", 106},     {"minimax-m2", 230}};
    const char *checkpoint = last_part(model->checkpoint);
    struct name_word word;
    for (size_t i = 0; model->profile && i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(sizes[i].profile, model->profile) == 0)
            return sizes[i].params_b;
    return name_word_next(checkpoint, checkpoint, &word) ? word.params_b : 0;
}

static bool are_far(double a, double b)
{
    return a > 0 && b > 0 && fabs(a / b - 1) > 0.06;
}

/* A size behind the name of a checkpoint that is not its own is that of another model: of a
 * distilled or a pruned one, or of several in one. Names round, and count an extra layer or not. */
static bool is_other_size(const struct model_name *model, const char *bare, const char *rest)
{
    const double own_b = size_b(model);
    struct name_word word;
    for (; name_word_next(bare, rest, &word); rest = word.at + 1)
        if (!word.is_len && are_far(word.params_b, own_b))
            return true;
    return false;
}

/* The row with the longest name that this one begins with; `*rest` is what stands behind it. */
static const struct model_name *find_row(const char *bare, const char **rest)
{
    const struct model_name *found = NULL;
    size_t most = 0;
    for (size_t i = 0; i < N_MODELS; i++) {
        const char *checkpoint = last_part(models[i].checkpoint);
        const char *profile = models[i].profile;
        const bool is_profile = profile && strcmp(bare, profile) == 0;
        const size_t n = is_profile ? strlen(bare) : begins(bare, checkpoint);
        if (n == 0 || (found && strlen(checkpoint) <= most))
            continue;
        found = &models[i];
        most = is_profile ? SIZE_MAX : strlen(checkpoint); /* the profile's own row is the first */
        *rest = bare + n;
    }
    return found;
}

static const struct model_name *find_model(const char *name)
{
    char text[256];
    const char *rest, *bare = bare_name(name, text);
    const struct model_name *found = find_row(bare, &rest);
    return found && !is_other_size(found, bare, rest) ? found : NULL;
}

bool model_has_other_size(const char *name)
{
    char text[256];
    const char *rest, *bare = bare_name(name, text);
    const struct model_name *found = find_row(bare, &rest);
    return found && found->profile && is_other_size(found, bare, rest);
}

const char *model_profile(const char *name)
{
    const struct model_name *model = find_model(name);
    return model ? model->profile : NULL;
}

/* The first size in a name; 0: none. */
static double named_size_b(const char *name)
{
    char text[256];
    const char *bare = bare_name(name, text);
    struct name_word word;
    for (const char *at = bare; name_word_next(bare, at, &word); at = word.at + 1)
        if (!word.is_len)
            return word.params_b;
    return 0;
}

bool model_names_contradict(const char *a, const char *b)
{
    const char *of_a = model_profile(a), *of_b = model_profile(b);
    return (of_a && of_b && strcmp(of_a, of_b) != 0) || are_far(named_size_b(a), named_size_b(b));
}

long long model_checkpoint_len(const char *name)
{
    const struct model_name *model = find_model(name);
    return model ? model->max_tokens : 0;
}

bool model_named_len(const char *name, double *thousands, long long *n_tokens)
{
    char text[256];
    const char *rest, *bare = bare_name(name, text);
    struct name_word word;
    if (!find_row(bare, &rest))
        return false;
    for (; name_word_next(bare, rest, &word); rest = word.at + 1)
        if (word.is_len) {
            *thousands = word.thousands;
            *n_tokens = word.n_tokens;
            return true;
        }
    return false;
}

/* Words of names of checkpoints. Those of the width come first: "GPTQ-Int8", "W4A16-AWQ". */
static const struct width_word {
    const char *word, *dtype;
} widths[] = {
    {"w8a8", "int8"},  {"w8a16", "int8"},  {"int8", "int8"},   {"8bit", "int8"},
    {"w4a16", "int4"}, {"int4", "int4"},   {"4bit", "int4"},   {"w4a8", ""},
    {"w4afp8", ""},    {"nvfp4", "nvfp4"}, {"mxfp4", "mxfp4"}, {"fp4", "fp4"},
    {"gguf", ""},      {"bnb", ""},        {"exl2", ""},       {"hqq", ""},
    {"fp8", "fp8"},    {"awq", "int4"},    {"gptq", "int4"},   {"autoround", "int4"},
};

static bool has_word(const char *name, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = name; *at; at++)
        if (strncasecmp(at, word, n) == 0 && !isalnum((unsigned char)at[n]) && at > name &&
            !isalnum((unsigned char)at[-1]))
            return true;
    return false;
}

const char *model_width(const char *name)
{
    char text[256];
    const char *bare = bare_name(name, text);
    const bool is_of_nvidia = strncmp(name, "nvidia/", strlen("nvidia/")) == 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (has_word(bare, widths[i].word))
            return is_of_nvidia && strcmp(widths[i].dtype, "fp4") == 0 ? "nvfp4" : widths[i].dtype;
    return NULL;
}

bool model_is_latent_profile(const char *profile)
{
    return strncmp(profile, "deepseek-v", strlen("deepseek-v")) == 0 ||
           strcmp(profile, "kimi-k2") == 0;
}

/* Sizes by the published config.json of each; of the last ones they differ from size to size. */
static const struct encoder_name encoders[] = {
    {"gemma-3-4b", "gemma3", 27, 1152},
    {"gemma-3-12b", "gemma3", 27, 1152},
    {"gemma-3-27b", "gemma3", 27, 1152},
    {"llama-4-", "llama4", 34, 1408},
    {"mistral-small-3.1", "mistral3", 24, 1024},
    {"mistral-small-3.2", "mistral3", 24, 1024},
    {"pixtral", NULL, 24, 1024},
    {"qwen2.5-vl-", "qwen2_5_vl", 0, 1280},
    {"qwen3-vl-2b", "qwen3_vl", 0, 1024},
    {"qwen3-vl-4b", "qwen3_vl", 0, 1024},
    {"qwen3-vl-", "qwen3_vl", 0, 1152},
    {"kimi-k2.5", "kimi_k25", 0, 0},
    {"-vl-", NULL, 0, 0},
    {"internvl", NULL, 0, 0},
    {"glm-4.5v", NULL, 0, 0},
    {"kimi-vl", NULL, 0, 0},
};

const struct encoder_name *model_encoder(const char *name)
{
    for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++)
        for (const char *at = name; *at; at++)
            if (strncasecmp(at, encoders[i].part, strlen(encoders[i].part)) == 0)
                return &encoders[i];
    return NULL;
}

const char *model_checkpoint(const char *profile)
{
    for (size_t i = 0; i < N_MODELS; i++)
        if (models[i].profile && strcmp(models[i].profile, profile) == 0)
            return models[i].checkpoint;
    return NULL;
}
