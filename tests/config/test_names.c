#include "base/data.h"
#include "loading.h"

#include <sys/stat.h>

#include "base/server_flags.h"
#include "config/keys.h"

Test(names, the_working_directory_comes_before_the_installed_data)
{
    char found[512];
    struct ifl_error error = {0};
    setenv("INFLIGHT_DATA", "tests/config/fixtures", 1);
    cr_assert_eq(data_resolve("serving", "vllm-v0", found, &error), 0);
    cr_expect_str_eq(found, "configs/serving/vllm-v0.yaml");
    cr_assert_eq(data_resolve("serving", "small", found, &error), 0);
    cr_expect_str_eq(found, "tests/config/fixtures/configs/serving/small.yaml");
    cr_assert_eq(data_path("three.csv", found), 0);
    cr_expect_str_eq(found, "tests/config/fixtures/three.csv");
    cr_expect_lt(data_path("four.csv", found), 0);
    cr_expect_lt(data_path("", found), 0);
}

Test(names, a_slash_or_an_extension_makes_a_path)
{
    char found[512];
    struct ifl_error error = {0};
    setenv("INFLIGHT_DATA", "tests/config/fixtures", 1);
    cr_assert_eq(data_resolve("models", "configs/models/llama-2-7b.yaml", found, &error), 0);
    cr_expect_str_eq(found, "configs/models/llama-2-7b.yaml");
    cr_expect_eq(data_resolve("models", "llama-2-7b.yaml", found, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "there is no file llama-2-7b.yaml, expected a model");
    cr_expect_eq(data_resolve("hardware", "tpu-v5", found, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text,
                     "unknown hardware profile tpu-v5, expected one of those that `inflight list "
                     "hardware` names or a path");
    cr_expect_eq(data_resolve("deployments", "tpu-v5", found, &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, "tpu-v5, expected one of eager-2024, "), "%s", error.text);
}

Test(names, lists_are_sorted_and_name_each_once)
{
    struct name_list names;
    struct ifl_error error = {0};
    setenv("INFLIGHT_DATA", ".", 1); /* the same folder twice */
    cr_assert_eq(data_names("serving", &names, &error), 0);
    cr_assert_gt(names.n, 2);
    for (size_t i = 1; i < names.n; i++)
        cr_expect_lt(strcmp(names.of[i - 1], names.of[i]), 0);
    name_list_free(&names);
    setenv("INFLIGHT_DATA", "tests/config/fixtures", 1);
    cr_assert_eq(data_names("serving", &names, &error), 0);
    bool small = false;
    for (size_t i = 0; i < names.n; i++)
        small |= strcmp(names.of[i], "small") == 0;
    cr_expect(small);
    name_list_free(&names);
}

/* ---- unknown names ---- */

static void expect_near(const char *kind, const char *name, const char *near)
{
    char found[512], expected[600];
    struct ifl_error error = {0};
    setenv("INFLIGHT_DATA", ".", 1);
    cr_expect_eq(data_resolve(kind, name, found, &error), IFL_E_INPUT, "%s", name);
    snprintf(expected, sizeof expected, " %s, did you mean %s?", name, near);
    cr_expect(strstr(error.text, expected), "\"%s\" lacks \"%s\"", error.text, expected);
}

/* If a name resembles the common prefix of a family, all members are offered, not the nearest one.
 */
Test(names, a_family_is_offered_as_a_whole)
{
    static const char vllm[] =
        "vllm-paper, vllm-v0, vllm-v0-chunked, vllm-v0-priority, vllm-v0-swap, vllm-v1, "
        "vllm-v1-2025-05, vllm-v1-2026-04, vllm-v1-2026-08, vllm-v1-2026-08-async, "
        "vllm-v1-2026-08-priority, vllm-v1-2026-11, vllm-v1-async, vllm-v1-eagle, "
        "vllm-v1-lmcache, vllm-v1-lora, vllm-v1-ngram, vllm-v1-offload, "
        "vllm-v1-priority or "
        "vllm-v1-sync";
    expect_near("serving", "vllm", vllm);
    expect_near("serving", "vllm1", vllm);
    expect_near("serving", "vllm-next", vllm);
    expect_near("serving", "sarathi-serve",
                "sarathi, sarathi-dynamic, sarathi-orca, sarathi-simple-chunking or sarathi-vllm");
    expect_near("serving", "trt-llm",
                "trtllm-1.2-max-utilization, trtllm-1.2-no-evict, trtllm-host-cache, "
                "trtllm-max-utilization, "
                "trtllm-no-evict or trtllm-static");
    expect_near("hardware", "a100",
                "a100-40gb-pcie, a100-40gb-sxm, a100-80gb-pcie, a100-80gb-sxm, "
                "a100-80gb-sxm-trtllm1.0 or a100-80gb-sxm-vidur2024");
    expect_near("models", "gemma-3", "gemma-3-12b, gemma-3-27b or gemma-3-4b");
    expect_near("models", "qwen3-max",
                "qwen3-0.6b, qwen3-1.7b, qwen3-14b, qwen3-235b-a22b, qwen3-30b-a3b, qwen3-32b, "
                "qwen3-4b, qwen3-8b, qwen3-coder-480b-a35b or qwen3-next-80b-a3b");
}

Test(names, a_misspelt_name_is_offered_alone)
{
    expect_near("serving", "vllm-v1-priorty", "vllm-v1-priority");
    expect_near("serving", "vLLM_V1", "vllm-v1");
    expect_near("serving", "sarthi", "sarathi");
    expect_near("serving", "vllm-v2", "vllm-v0 or vllm-v1");
    expect_near("models", "Llama2-7B", "llama-2-7b");
    expect_near("hardware", "H200",
                "h200-sxm, h200-sxm-trtllm1.2, h200-sxm-trtllm1.2-static-fp8 or "
                "h200-sxm-trtllm1.3");
}

Test(names, no_data_is_an_error_that_says_where_it_was_looked_for)
{
    static const char *const kinds[] = {"serving", "models", "hardware", "traces"};
    struct name_list names;
    struct ifl_error error = {0};
    cr_assert_eq(chdir("tests"), 0); /* a folder without data */
    setenv("INFLIGHT_DATA", "/nonexistent", 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        cr_expect_eq(data_names(kinds[i], &names, &error), IFL_E_INPUT, "%s", kinds[i]);
        cr_expect(strstr(error.text, " here and none in /nonexistent; "), "%s", error.text);
        cr_expect(names.n == 0 && !names.of);
    }
}

/* ---- words of vLLM's ---- */

Test(names, flags_of_vllm_stand_for_keys)
{
    struct ifl_error error = {0};
    const struct node node = {.file = (char *)"here"};
    for (enum server server = 0; server < N_SERVERS; server++)
        for (size_t i = 0; i < server_flags_of(server)->n; i++) {
            const struct server_flag *flag = &server_flags_of(server)->of[i];
            if (flag->key)
                cr_expect_eq(key_check(flag->key, true, &node, &error), 0, "%s", flag->key);
            cr_expect(flag->key || (flag->sense != FLAG_MAPS && flag->sense != FLAG_ELSEWHERE));
            const bool may_not_be = flag->sense == FLAG_UNMODELLED || flag->neutral;
            cr_expect_eq(may_not_be, !!flag->what, "%s", flag->name);
        }
    const char *const same[] = {"--max-num-seqs", "max_num_seqs", "max-num-seqs",
                                "a.b.max_num_seqs"};
    enum server server;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        cr_expect_str_eq(server_flag_meant(same[i], &server)->key, "serving.batching.max_seqs");
    cr_expect_null(server_flag_meant("--max-num-seq", &server));
    cr_expect_null(server_flag_meant("max_num_seqs.a", &server));
    cr_expect_null(server_flag_meant("", &server));
    cr_expect_eq(key_check("max_num_seqs", false, &node, &error), IFL_E_INPUT);
    cr_expect_str_eq(
        error.text,
        "unknown key max_num_seqs, vLLM's --max-num-seqs is serving.batching.max_seqs here");
}

/* Every shipped preset loads with only a workload and a cost added. */
Test(names, shipped_presets_load)
{
    struct name_list names;
    struct ifl_error error = {0};
    setenv("INFLIGHT_DATA", ".", 1);
    cr_assert_eq(data_names("serving", &names, &error), 0);
    for (size_t i = 0; i < names.n; i++) {
        char set[256];
        snprintf(set, sizeof set, "serving.preset=%s", names.of[i]);
        /* tiers have sizes and rates in bytes, and SMALL names no model */
        struct study *study =
            load_with(SMALL, (const char *const[]){"cluster.links.token_bytes=1000000", set}, 2);
        study_free(study);
    }
    name_list_free(&names);
}
