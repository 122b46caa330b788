/* Names of checkpoints, as hubs, caches and folders have them: the model of each, and its length
 * (max_position_embeddings of its config.json) where that is not the profile's. */
#include <criterion/criterion.h>
#include <string.h>

#include "import/names.h"

enum { VAGUE = -1 }; /* the name tells of a length, but not exactly */

static const struct {
    const char *name, *profile; /* NULL: none */
    bool has_other_size;
    long long n_tokens; /* behind the checkpoint's name; 0: nothing is said */
} names[] = {
    /* distilled into Qwen2.5 and Llama; 671 and 685 billion parameters are the model's own */
    {"/opt/llm/deepseek-r1-14b", NULL, true, 0},
    {"deepseek-r1-32b-awq", NULL, true, 0},
    {"DeepSeek-R1-70B", NULL, true, 0},
    {"deepseek-r1-1.5b", NULL, true, 0},
    {"deepseek-r1-7b-qwen-distill", NULL, true, 0},
    {"deepseek-r1-8b-llama-fp8", NULL, true, 0},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "qwen2.5-32b", false, 0},
    {"casperhansen/deepseek-r1-distill-qwen-14b-awq", "qwen2.5-14b", false, 0},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2.5-7b", false, 0},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-r1-distill-qwen-1.5b", false, 0},
    {"x/DeepSeek-R1-Distill-Qwen2-3B", NULL, false, 0},
    {"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3-8b", false, 0},
    {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama-3-8b", false, 0},
    {"RedHatAI/DeepSeek-R1-Distill-Llama-70B-FP8-dynamic", "llama-3.1-70b", false, 0},
    {"Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-30b-a3b", false, 0},
    {"Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", "qwen3-coder-480b-a35b", false, 0},
    {"cerebras/DeepSeek-R1-0528-REAP-508B-A28B", NULL, true, 0},
    {"deepseek-r1-671b", "deepseek-v3", false, 0},
    {"DeepSeek-V3-685B", "deepseek-v3", false, 0},
    {"deepseek-ai/DeepSeek-R1-0528", "deepseek-v3", false, 0},
    {"deepseek-ai/DeepSeek-V3-0324", "deepseek-v3", false, 0},
    {"deepseek-ai/DeepSeek-V3.1", "deepseek-v3", false, 0},
    {"deepseek-ai/DeepSeek-V3.2", "deepseek-v3.2", false, 0},
    {"cognitivecomputations/DeepSeek-R1-AWQ", "deepseek-v3", false, 0},
    {"mlx-community/DeepSeek-V3-4bit", "deepseek-v3", false, 0},
    {"deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-v2-lite", false, 0},
    {"deepseek-v2-lite-16b", "deepseek-v2-lite", false, 0},
    {"deepseek-v2-236b", "deepseek-v2", false, 0},
    {"deepseek-v2-16b", NULL, true, 0},
    {"deepseek-ai/DeepSeek-V2.5", "deepseek-v2", false, 0},
    {"deepseek-coder-v2-16b", NULL, true, 0},
    {"deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", "deepseek-v2-lite", false, 0},
    {"moonshotai/Kimi-K2-Instruct-0905", "kimi-k2", false, 0},
    {"moonshotai/Kimi-K2.5", NULL, false, 0}, /* experts alone in 4 bits */
    {"nvidia/Kimi-K2.5-NVFP4", "kimi-k2", false, 0},
    {"bigscience/bloom", "bloom-176b", false, 0},
    {"bloom-176b", "bloom-176b", false, 0},
    {"bigscience/bloom-7b1", NULL, true, 0},
    {"bigscience/bloom-560m", NULL, true, 0},
    {"bigscience/bloom-1b7", NULL, true, 0},
    {"bigscience/bloom-3b", NULL, true, 0},
    {"bigscience/bloomz-7b1", NULL, false, 0},
    {"facebook/opt-13b", "opt-13b", false, 0},
    {"facebook/opt-125m", NULL, false, 0},
    {"01-ai/Yi-34B-Chat-4bits", "yi-34b", false, 0},
    {"01-ai/Yi-34B-200K", "yi-34b", false, 0}, /* of the table: 200,000 */
    {"cloudyu/Yi-34Bx2-MoE-60B", NULL, false, 0},
    {"togethercomputer/LLaMA-2-7B-32K", "llama-2-7b", false, 32768},
    {"togethercomputer/Llama-2-7B-32K-Instruct", "llama-2-7b", false, 32768},
    {"Yukang/Llama-2-7b-longlora-100k-ft", "llama-2-7b", false, VAGUE},
    {"Yukang/Llama-2-13b-longlora-16k-ft", "llama-2-13b", false, 16384},
    {"meta-llama/Llama-2-7b-chat-hf", "llama-2-7b", false, 0},
    {"TheBloke/Llama-2-13B-chat-GPTQ", "llama-2-13b", false, 0},
    {"TheBloke/Llama-2-70B-chat-AWQ", "llama-2-70b", false, 0},
    {"models--meta-llama--Llama-2-7b-hf/snapshots/0e9e39", "llama-2-7b", false, 0},
    {"gradientai/Llama-3-8B-Instruct-262k", "llama-3-8b", false, 262144},
    {"gradientai/Llama-3-8B-Instruct-Gradient-1048k", "llama-3-8b", false, 1048576},
    {"gradientai/Llama-3-70B-Instruct-Gradient-524k", "llama-3-70b", false, 524288},
    {"nvidia/Llama-3.1-8B-UltraLong-1M-Instruct", "llama-3-8b", false, 1048576},
    {"meta-llama/Llama-3.1-8B-Instruct", "llama-3-8b", false, 0},
    {"nvidia/Llama-3.1-Minitron-4B-Width-Base", NULL, false, 0},
    {"unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama-3-8b", false, 0},
    {"ibnzterrell/Meta-Llama-3.3-70B-Instruct-AWQ-INT4", "llama-3.1-70b", false, 0},
    {"meta-llama/Llama-3.2-1B", "llama-3.2-1b", false, 0},
    /* as folders write them */
    {"/models/llama3-70b-awq", "llama-3-70b", false, 0},
    {"llama3.1-8b-instruct", "llama-3-8b", false, 0},
    {"llama3.2-11b-vision", NULL, false, 0},
    {"/workspace/qwen2_5_14b_instruct_awq", "qwen2.5-14b", false, 0},
    {"deepseek_v3", "deepseek-v3", false, 0},
    {"gpt_oss_20b", "gpt-oss-20b", false, 0},
    {"Qwen2-57B-A14B", NULL, false, 0},
    {"llama33-70b", NULL, false, 0},
    {"llama3-70b-gradient-524k", "llama-3-70b", false, 524288},
    {"unsloth/Llama-3.2-3B-Instruct-bnb-4bit", "llama-3.2-3b", false, 0},
    {"meta-llama/Llama-3.2-11B-Vision-Instruct", NULL, false, 0},
    {"neuralmagic/Meta-Llama-3-8B-Instruct-quantized.w4a16", "llama-3-8b", false, 0},
    {"meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b", false, 0},
    {"Meta-Llama-3-8B-Instruct-4x8B-MoE", NULL, true, 0},
    {"codellama/CodeLlama-34b-Instruct-hf", "codellama-34b", false, 0},
    {"mistralai/Mistral-7B-Instruct-v0.1", "mistral-7b", false, 0},
    {"mistralai/Mistral-7B-Instruct-v0.2", NULL, false, 0},
    {"mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3", false, 0},
    {"neuralmagic/Mistral-Nemo-Instruct-2407-FP8", "mistral-nemo-12b", false, 0},
    {"nvidia/Mistral-NeMo-12B-Instruct", "mistral-nemo-12b", false, 0},
    {"nvidia/Mistral-NeMo-Minitron-8B-Base", NULL, true, 0},
    {"mistralai/Mistral-Small-Instruct-2409", NULL, false, 0},
    {"mistralai/Mistral-Small-24B-Instruct-2501", "mistral-small-24b", false, 0},
    {"mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral-small-24b", false, 0},
    {"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b", false, 0},
    {"mistralai/Mixtral-8x22B-v0.1", NULL, false, 0},
    {"Qwen/Qwen3-8B-FP8", "qwen3-8b", false, 0},
    {"Qwen/Qwen3-0.6B", "qwen3-0.6b", false, 0},
    {"Qwen/Qwen3-Embedding-0.6B", NULL, false, 0},
    {"Qwen/Qwen3-4B-Instruct-2507-FP8", "qwen3-4b", false, 0},
    {"Qwen/Qwen3-VL-2B-Instruct", "qwen3-1.7b", false, 0},
    {"Qwen/Qwen3-VL-30B-A3B-Thinking-FP8", "qwen3-30b-a3b", false, 0},
    {"unsloth/Qwen3-8B-128K-GGUF", "qwen3-8b", false, 131072},
    {"DavidAU/Qwen3-8B-192k-Context-6X-Josiefied-Uncensored", "qwen3-8b", false, VAGUE},
    {"Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b", false, 0},
    {"Qwen/Qwen3-30B-A3B-GPTQ-Int4", "qwen3-30b-a3b", false, 0},
    {"kalomaze/Qwen3-16B-A3B", NULL, false, 0},
    {"Qwen/Qwen2.5-7B-Instruct-1M", "qwen2.5-7b", false, 0}, /* of the table: 1,010,000 */
    {"Qwen/Qwen2.5-3B-Instruct", NULL, false, 0},
    {"Qwen/Qwen2.5-Coder-32B-Instruct-GPTQ-Int4", "qwen2.5-32b", false, 0},
    {"Qwen/Qwen2.5-VL-72B-Instruct-AWQ", "qwen2.5-72b", false, 0},
    {"Qwen/Qwen2.5-VL-3B-Instruct", NULL, false, 0},
    {"Qwen/QwQ-32B-AWQ", "qwen2.5-32b", false, 0},
    {"microsoft/phi-4", "phi-4", false, 0},
    {"unsloth/phi-4-14b", "phi-4", false, 0},
    {"microsoft/Phi-4-reasoning-plus", "phi-4", false, 0},
    {"microsoft/Phi-4-reasoning-vision-15B", NULL, true, 0},
    {"microsoft/Phi-4-mini-instruct", NULL, false, 0},
    {"microsoft/Phi-4-multimodal-instruct", NULL, false, 0},
    {"google/gemma-2-27b-it", "gemma-2-27b", false, 0},
    {"zai-org/GLM-4.5-FP8", "glm-4.5", false, 0},
    {"zai-org/GLM-4.6", "glm-4.5", false, 0},
    {"zai-org/GLM-4.5-Air-FP8", "glm-4.5-air", false, 0},
    {"cerebras/GLM-4.5-Air-REAP-82B-A12B", NULL, true, 0},
    {"zai-org/GLM-4.5V", NULL, false, 0},
    {"zai-org/GLM-4.7-Flash", NULL, false, 0},
    {"MiniMaxAI/MiniMax-M2.5", "minimax-m2", false, 0},
    {"MiniMaxAI/MiniMax-M1-80k", NULL, false, 0},
};

Test(names, a_name_of_another_size_is_of_another_model)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = model_profile(names[i].name), *wanted = names[i].profile;
        cr_expect(wanted ? found && strcmp(found, wanted) == 0 : !found, "%s: %s", names[i].name,
                  found ? found : "none");
        cr_expect_eq(model_has_other_size(names[i].name), names[i].has_other_size, "%s",
                     names[i].name);
    }
}

Test(names, a_length_behind_the_name_is_told)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double thousands;
        long long n_tokens = 0;
        if (!names[i].profile)
            continue;
        const bool is_said = model_named_len(names[i].name, &thousands, &n_tokens);
        cr_expect_eq(is_said, names[i].n_tokens != 0, "%s", names[i].name);
        if (is_said)
            cr_expect_eq(n_tokens, names[i].n_tokens == VAGUE ? 0 : names[i].n_tokens, "%s: %lld",
                         names[i].name, n_tokens);
    }
}

/* max_position_embeddings of each config.json, where it is not the profile's. */
Test(names, lengths_of_checkpoints)
{
    static const struct {
        const char *name;
        long long n_tokens;
    } of[] = {{"01-ai/Yi-34B-200K", 200000},
              {"Qwen/Qwen2.5-7B-Instruct-AWQ", 0},
              {"Qwen/Qwen2.5-7B", 131072},
              {"qwen2.5-7b", 0},
              {"Qwen/Qwen2.5-14B-Instruct-1M", 1010000},
              {"Qwen/Qwen2.5-Math-7B-Instruct", 4096},
              {"Qwen/QwQ-32B", 40960},
              {"Qwen/QwQ-32B-Preview", 0},
              {"deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", 131072},
              {"Qwen/Qwen3-4B", 0},
              {"Qwen/Qwen3-4B-Thinking-2507", 262144},
              {"Qwen/Qwen3-VL-8B-Instruct", 262144},
              {"mistralai/Mistral-Small-24B-Base-2501", 0},
              {"mistralai/Mistral-Small-3.1-24B-Instruct-2503", 131072},
              {"microsoft/Phi-4-reasoning", 32768},
              {"zai-org/GLM-4.5", 0},
              {"zai-org/GLM-4.7-FP8", 202752},
              {"MiniMaxAI/MiniMax-M2", 0},
              {"MiniMaxAI/MiniMax-M2.7", 204800}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        cr_expect_eq(model_checkpoint_len(of[i].name), of[i].n_tokens, "%s: %lld", of[i].name,
                     model_checkpoint_len(of[i].name));
}

/* vision_config of Qwen3-VL has no num_hidden_layers; its width goes by the size. */
Test(names, encoders)
{
    cr_expect_eq(model_encoder("Qwen/Qwen3-VL-4B-Instruct")->n_width, 1024);
    cr_expect_eq(model_encoder("Qwen/Qwen3-VL-30B-A3B-Instruct")->n_width, 1152);
    cr_expect_eq(model_encoder("Qwen/Qwen3-VL-8B-Instruct")->n_layers, 0);
    cr_expect_eq(model_encoder("nvidia/Kimi-K2.5-NVFP4")->n_width, 0); /* other names for it */
    cr_expect_null(model_encoder("mistralai/Mistral-Small-24B-Instruct-2501"));
    cr_expect_not_null(model_encoder("mistralai/Mistral-Small-3.1-24B-Instruct-2503"));
}

Test(names, two_names_of_a_log_may_be_one_model)
{
    cr_expect(model_names_contradict("Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B-Instruct-2507"));
    cr_expect(model_names_contradict("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-72B"));
    cr_expect(model_names_contradict("Qwen/Qwen3-8B", "meta-llama/Meta-Llama-3-8B"));
    cr_expect_not(model_names_contradict("Qwen/Qwen3-8B", "/models/mine"));
    cr_expect_not(model_names_contradict("Qwen/Qwen3-8B", "/models/qwen3-8b-fp8"));
    cr_expect_not(model_names_contradict("x/my-8b", "Qwen/Qwen3-8B"));
    cr_expect_not(model_names_contradict("Mistral-7B-v0.1", "x/7.25B"));
}
