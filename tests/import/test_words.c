/* Words of a command line, and lists of arguments as Python prints them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/server_flags.h"
#include "import/facts.h"
#include "import/names.h"
#include "import/words.h"

static void expect_words(const char *line, const char *const *wanted, size_t n)
{
    struct words words;
    struct ifl_error error = {0};
    cr_assert_eq(words_split(line, &words, &error), 0, "%s", error.text);
    cr_expect_eq(words.n, n, "%s: %zu words", line, words.n);
    for (size_t i = 0; i < n && i < words.n; i++)
        cr_expect_str_eq(words.of[i], wanted[i], "%s: %s", line, words.of[i]);
    words_free(&words);
}

/* Beside `sh -c 'printf "%s\n" ...'` for words without expansions. */
Test(words, splits_as_a_shell_does)
{
    static const char *const plain[] = {"vllm", "serve", "a b", "c d", "e f", ""};
    expect_words("vllm  serve 'a b' \"c d\"\te\\ f ''", plain, 6);
    static const char *const joined[] = {"a", "--b={\"c\": 1}", "d"};
    expect_words("a \\\n --b='{\"c\": 1}' \\\r\n d\n", joined, 3);
    static const char *const kept[] = {"$HOME", "*", "`x`", "a\\b", "\"q\""};
    expect_words("$HOME * `x` 'a\\b' \"\\\"q\\\"\"", kept, 5);
    expect_words("", NULL, 0);
    expect_words(" \n\t", NULL, 0);
}

/* What a shell takes for itself: `sh -c 'printf "%s\n" ...'` prints the words up to the break. */
Test(words, commands_end_where_a_shell_ends_them)
{
    static const char *const both[] = {"a", "&", "b", ";", "c", "|", "d"};
    expect_words("a && b;; c |d &", (const char *const[]){"a", "&", "b", ";", "c", "|", "d", "&"},
                 8);
    expect_words("# x isn't\na&b # y\n; c 2>&1 >e <f|d>>g", both, 7);
    static const char *const lines[] = {"a", "-b", "c", ";", "d", "';'#"};
    expect_words("a\n\n -b c\n d \"';'\"#\n", lines, 6);
    static const char *const version[] = {"a", "#", "version", "0.9.1"};
    expect_words("a # version 0.9.1", version, 4);
}

/* What stands for a value is one word. Redirections are none: from a file, to a file. */
Test(words, placeholders_are_words)
{
    static const char *const named[] = {"-e",           "A=<a b>", "<image>:<tag>", "--model",
                                        "<your model>", "-tp",     "<n>",           "<dir>/x"};
    expect_words("-e A=<a b> <image>:<tag> --model <your model> -tp <n> <dir>/x", named, 8);
    static const char *const read[] = {"a", "b", "c", "d", "e"};
    expect_words("a <in >out b <in 2>/dev/null c <in>out d <<EOF >x e", read, 5);
    expect_words("a <in> out", (const char *const[]){"a", "<in>", "out"}, 3);
}

Test(words, a_quote_that_is_not_closed_is_an_error)
{
    struct words words;
    struct ifl_error error = {0};
    cr_expect_eq(words_split("a 'b", &words, &error), IFL_E_INPUT);
    cr_expect_eq(words_split("a \"b", &words, &error), IFL_E_INPUT);
}

static void expect_arguments(const char *list, const char *const (*wanted)[2], size_t n)
{
    char text[512], *at = text;
    struct argument argument;
    snprintf(text, sizeof text, "%s", list);
    for (size_t i = 0; i < n; i++) {
        cr_assert(argument_next(&at, &argument), "%s: %zu", list, i);
        cr_expect_str_eq(argument.name, wanted[i][0], "%s: %s", list, argument.name);
        if (wanted[i][1])
            cr_expect_str_eq(argument.value, wanted[i][1], "%s: %s", list, argument.value);
        else
            cr_expect_null(argument.value);
    }
    cr_expect_not(argument_next(&at, &argument), "%s", list);
}

Test(words, arguments_as_python_prints_them)
{
    /* keywords, with brackets and quotes inside; a line that forgets a comma */
    static const char *const keywords[][2] = {
        {"model", "a,b"},    {"f", "<A.B: 'c, d'>"}, {"g", "{'x': [1, 2], 'y=': ')'}"},
        {"chunked", "True"}, {"steps", "1"},         {"none", ""}};
    expect_arguments("model='a,b', f=<A.B: 'c, d'>, g={'x': [1, 2], 'y=': ')'}, chunked=True "
                     "steps=1, none='')",
                     keywords, 6);
    static const char *const dictionary[][2] = {{"port", "8080"}, {"name", "['a', 'b']"}};
    expect_arguments("'port': 8080, 'name': ['a', 'b']} and more", dictionary, 2);
    static const char *const cut[][2] = {{"model_path", "x"}, {"...", NULL}};
    expect_arguments("model_path='x', ...)", cut, 2);
    static const char *const blanks[][2] = {{"mem", "23.00 GB"}};
    expect_arguments("mem=23.00 GB", blanks, 1);
    static const char *const open[][2] = {{"a", "[1, 2"}};
    expect_arguments("a=[1, 2", open, 1);
    expect_arguments("", NULL, 0);
    expect_arguments(")", NULL, 0);
}

Test(words, counts_as_servers_take_them)
{
    long long count = 0;
    cr_expect(count_read("8192", &count) && count == 8192);
    cr_expect(count_read("2,042,016", &count) && count == 2042016);
    cr_expect(count_read("8k", &count) && count == 8000); /* vLLM: k is 1000, K is 1024 */
    cr_expect(count_read("8K", &count) && count == 8192);
    static const char *const none[] = {"", "x", "-1", "1.5", "8kk", "1e3", "99999999999999999999"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_expect_not(count_read(none[i], &count), "%s", none[i]);
}

Test(names, flags_in_their_spellings)
{
    static const char *const same[] = {"--tensor-parallel-size", "--tensor_parallel_size", "-tp",
                                       "tp", "--tensor-parallel"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const struct server_flag *flag = server_flag_find(SERVER_VLLM, same[i], true);
        cr_assert_not_null(flag, "%s", same[i]);
        cr_expect_str_eq(flag->name, "tensor_parallel_size");
    }
    cr_expect_null(server_flag_find(SERVER_VLLM, "--tensor-parallel", false));
    cr_expect_null(server_flag_find(SERVER_VLLM, "--max-num", true)); /* of several */
    cr_expect_null(server_flag_find(SERVER_VLLM, "--request-rate", true));
    cr_expect_null(server_flag_find(SERVER_VLLM, "--", true));
}

/* No name and no alias is of two flags: the first would hide the second. */
Test(names, a_name_is_of_one_flag)
{
    for (enum server server = 0; server < N_SERVERS; server++)
        for (size_t i = 0; i < server_flags_of(server)->n; i++) {
            const struct server_flag *flag = &server_flags_of(server)->of[i];
            if (flag->sense != FLAG_ELSEWHERE)
                cr_expect_eq(server_flag_find(server, flag->name, false), flag, "%s", flag->name);
        }
}

/* Where a list that begins behind a bracket, or without one, is not whole. */
Test(lists, ends)
{
    static const struct {
        const char *text;
        bool has_bracket;
        enum list_end end;
    } lists[] = {
        {"a='x', b={'c': 1})", true, LIST_CLOSED},
        {"'a': 1} and more", true, LIST_CLOSED},
        {"a='x', b=...", true, LIST_CLOSED},
        {"a='x', b=1", true, LIST_OPEN},
        {"a='x', b=1", false, LIST_MAY_GO_ON},
        {"a='x', b=1, ", false, LIST_MAY_GO_ON},
        {"a='x", false, LIST_OPEN},
        {"a='x\\'", false, LIST_OPEN},
        {"a={\"b\": [1, 2", false, LIST_OPEN},
        {"a=1, tensor_par", false, LIST_OPEN},
        {"a=C(b=1), c", false, LIST_OPEN},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        cr_expect_eq(list_end_of(lists[i].text, lists[i].has_bracket), lists[i].end, "%s",
                     lists[i].text);
}

Test(names, models_and_gpus)
{
    static const char *const models[][2] = {
        {"meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"},
        {"/x/models--meta-llama--Llama-3.1-8B-Instruct/snapshots/0e9e39", "llama-3-8b"},
        {"neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "llama-3.1-70b"},
        {"Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"},
        {"/models/llama-2-7b-chat-hf/", "llama-2-7b"},
        {"qwen3-8b", "qwen3-8b"}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        cr_expect_str_eq(model_profile(models[i][0]), models[i][1], "%s", models[i][0]);
    static const char *const others[] = {"Qwen/Qwen3-80B", "mistralai/Mistral-7B-v0.2", "x", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_null(model_profile(others[i]), "%s", others[i]);
    cr_expect_eq(model_checkpoint_len("Qwen/Qwen3-30B-A3B-Instruct-2507"), 262144);
    cr_expect_eq(model_checkpoint_len("qwen3-30b-a3b"), 0);
    cr_expect_eq(model_checkpoint_len("Qwen/Qwen3-Coder-30B-A3B-Instruct"), 262144);
    cr_expect_eq(model_checkpoint_len("deepseek-ai/DeepSeek-R1-Distill-Llama-8B"), 131072);
    cr_expect_str_eq(model_width("Qwen/Qwen3-32B-GPTQ-Int8"), "int8");
    cr_expect_str_eq(model_width("nvidia/Qwen3-32B-FP4"), "nvfp4");
    cr_expect_str_eq(model_width("RedHatAI/Qwen3-32B-NVFP4"), "nvfp4");
    cr_expect_str_eq(model_width("x/Qwen3-32B-MXFP4"), "mxfp4");
    cr_expect_null(model_width("AWQ/Qwen3-32B"));
    cr_expect_str_eq(gpu_name_in("E=8,N=3584,device_name=NVIDIA_H100_80GB_HBM3.json"),
                     "NVIDIA H100 80GB HBM3");
    cr_expect_str_eq(gpu_name_in("|   0  NVIDIA L40S    Off |"), "NVIDIA L40S");
    cr_expect_str_eq(gpu_name_in("GPU 0: NVIDIA A100-SXM4-80GB"), "NVIDIA A100-SXM4-80GB");
    cr_expect_null(gpu_name_in("NVIDIA-SMI 570.148.08  NVIDIA L400"));
    /* other cards than those whose names these begin with, and a part of one */
    cr_expect_str_eq(gpu_name_in("device_name=NVIDIA_H20-3e.json"), "NVIDIA H20-3e");
    cr_expect_str_eq(gpu_name_in("GPU 0: NVIDIA H200 NVL"), "NVIDIA H200 NVL");
    cr_expect_str_eq(gpu_name_in("| 0 NVIDIA GeForce RTX 4090 D  On |"),
                     "NVIDIA GeForce RTX 4090 D");
    cr_expect_str_eq(gpu_name_in("device_name=NVIDIA_GeForce_RTX_4090_Laptop_GPU"),
                     "NVIDIA GeForce RTX 4090 Laptop GPU");
    cr_expect_null(gpu_name_in("GPU 0: NVIDIA H100 80GB HBM3 MIG 3g.40gb"));
}

/* Distilled ones are other models of these shapes' owner. */
Test(words, names_of_models_with_latent_attention)
{
    static const char *const models[][2] = {
        {"deepseek-ai/DeepSeek-V3", "deepseek-v3"},
        {"deepseek-ai/DeepSeek-V3.1-Base", "deepseek-v3"},
        {"deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2"},
        {"cognitivecomputations/DeepSeek-R1-AWQ", "deepseek-v3"},
        {"deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"},
        {"deepseek-ai/DeepSeek-V2-Chat", "deepseek-v2"},
        {"DeepSeek-V2-Lite-Chat", "deepseek-v2-lite"},
        {"DeepSeek-Coder-V2-Instruct", "deepseek-v2"},
        {"DeepSeek-Coder-V2-Lite-Instruct", "deepseek-v2-lite"},
        {"moonshotai/Kimi-K2-Instruct-0905", "kimi-k2"}};
    static const char *const others[] = {"deepseek-ai/DeepSeek-V4", "moonshotai/Kimi-K2.5"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const char *profile = model_profile(models[i][0]);
        cr_assert_not_null(profile, "%s", models[i][0]);
        cr_expect_str_eq(profile, models[i][1], "%s", models[i][0]);
        cr_expect(model_is_latent_profile(profile));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_null(model_profile(others[i]), "%s", others[i]);
    cr_expect_not(model_is_latent_profile("llama-3-8b"));
    cr_expect_not(
        model_is_latent_profile(model_profile("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B")));
    cr_expect_str_eq(model_checkpoint("deepseek-v2-lite"), "deepseek-ai/DeepSeek-V2-Lite");
}
