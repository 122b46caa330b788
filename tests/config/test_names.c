#include "loading.h"

#include <sys/stat.h>

Test(names, the_working_directory_comes_before_the_installed_data)
{
    char found[512];
    struct ifl_error error = {0};
    setenv("INFLIGHT_DATA", "tests/config/fixtures", 1);
    cr_assert_eq(config_resolve_name("serving", "vllm-v0", found, &error), 0);
    cr_expect_str_eq(found, "configs/serving/vllm-v0.yaml");
    cr_assert_eq(config_resolve_name("serving", "small", found, &error), 0);
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
    cr_assert_eq(config_resolve_name("models", "configs/models/llama-2-7b.yaml", found, &error), 0);
    cr_expect_str_eq(found, "configs/models/llama-2-7b.yaml");
    cr_expect_eq(config_resolve_name("models", "llama-2-7b.yaml", found, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "there is no file llama-2-7b.yaml, expected a model");
    cr_expect_eq(config_resolve_name("hardware", "tpu-v5", found, &error), IFL_E_INPUT);
    cr_expect_eq(strncmp(error.text, "unknown hardware profile tpu-v5, expected one of a100-", 53),
                 0, "%s", error.text);
}

Test(names, lists_are_sorted_and_name_each_once)
{
    struct name_list names;
    struct ifl_error error = {0};
    setenv("INFLIGHT_DATA", ".", 1); /* the same folder twice */
    cr_assert_eq(config_names("serving", &names, &error), 0);
    cr_assert_gt(names.n, 2);
    for (size_t i = 1; i < names.n; i++)
        cr_expect_lt(strcmp(names.of[i - 1], names.of[i]), 0);
    name_list_free(&names);
    setenv("INFLIGHT_DATA", "tests/config/fixtures", 1);
    cr_assert_eq(config_names("serving", &names, &error), 0);
    bool small = false;
    for (size_t i = 0; i < names.n; i++)
        small |= strcmp(names.of[i], "small") == 0;
    cr_expect(small);
    name_list_free(&names);
}

/* Whatever is shipped loads: a preset needs nothing but a workload and a cost. */
Test(names, shipped_presets_load)
{
    struct name_list names;
    struct ifl_error error = {0};
    setenv("INFLIGHT_DATA", ".", 1);
    cr_assert_eq(config_names("serving", &names, &error), 0);
    for (size_t i = 0; i < names.n; i++) {
        char set[256];
        snprintf(set, sizeof set, "serving.preset=%s", names.of[i]);
        struct study *study = load_with(SMALL, (const char *const[]){set}, 1);
        study_free(study);
    }
    name_list_free(&names);
}
