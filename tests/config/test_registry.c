#include "config/registry.h"
#include "loading.h"

static void expect_refused(const char *plugin, const char *message)
{
    char path[512];
    struct ifl_error error = {0};
    snprintf(path, sizeof path, "%s/%s", PLUGINS, plugin);
    cr_expect_eq(registry_load_plugin(path, &error), IFL_E_INPUT, "%s", plugin);
    cr_expect_str_eq(error.file, path);
    cr_expect_str_eq(error.text, message, "%s", error.text);
}

static size_t count(void)
{
    size_t n = 0;
    while (registry_at(n))
        n++;
    return n;
}

Test(registry, knows_what_is_built_in)
{
    const struct ifl_policy *policy = registry_find(IFL_BATCHING, "static");
    cr_assert_not_null(policy);
    cr_expect_str_eq(policy->name, "static");
    cr_expect_eq(policy->kind, IFL_BATCHING);
    cr_expect_null(registry_find(IFL_ORDER, "static"));
    cr_expect_null(registry_find(IFL_BATCHING, "nobody"));
    cr_expect_str_eq(module_kind_name(IFL_PREEMPT), "preempt");
}

/* Every default, printed, is read back as a legal value. */
Test(registry, built_in_defaults_are_legal)
{
    const struct ifl_policy *policy;
    for (size_t i = 0; (policy = registry_at(i)); i++) {
        void *params = calloc(1, policy->params_bytes + 1),
             *again = calloc(1, policy->params_bytes + 1);
        struct ifl_error error = {0};
        cr_assert_eq(fields_read(NULL, "", policy->params, policy->n_params, NULL, params, &error),
                     0, "%s", error.text);
        for (size_t j = 0; j < policy->n_params; j++) {
            char text[512];
            struct node *value;
            field_print(&policy->params[j], params, text, sizeof text);
            cr_assert_eq(tree_parse(text, strlen(text), "value", &value, &error), 0);
            cr_expect_eq(field_read(value, "", &policy->params[j], again, &error), 0, "%s: %s",
                         policy->name, error.text);
            tree_free(value);
        }
        cr_expect_arr_eq(params, again, policy->params_bytes, "%s", policy->name);
        free(params);
        free(again);
    }
}

Test(registry, a_plugin_adds_its_policies)
{
    struct ifl_error error = {0};
    const size_t n_before = count();
    cr_assert_eq(registry_load_plugin(PLUGINS "/good.so", &error), 0, "%s", error.text);
    cr_expect_eq(count(), n_before + 2);
    cr_assert_not_null(registry_find(IFL_ORDER, "lifo"));
    const char *const sets[] = {"serving.order.policy=lifo", "serving.order.weight=0.75"};
    struct study *study = load_with(SMALL, sets, 2);
    cr_expect_str_eq(module_text(study_point(study, 0), IFL_ORDER, "weight"), "lifo weight=0.75");
    study_free(study);
    expect_refused("good.so", "policy 1 of its list, order lifo, is there already");
    cr_expect_eq(count(), n_before + 2);
}

Test(registry, bad_plugins_are_refused_whole)
{
    const size_t n_before = count();
    expect_refused("none.so", "there is no such file, expected a plug-in");
    expect_refused("no_list.so", "no symbol ifl_policies_v3, expected a list of policies");
    expect_refused("wrong_abi.so", "policy ABI 4, expected 3: build it anew");
    expect_refused("wrong_default.so", "policy 2 of its list, order second, has a parameter whose "
                                       "default is out of its range: weight");
    expect_refused("long_default.so", "policy 1 of its list, order names, has a parameter whose "
                                      "default is longer than its field: is_cut");
    expect_refused("outside.so", "policy 1 of its list, order outside, has a parameter that lies "
                                 "outside its parameter struct: weight");
    expect_refused("misaligned.so", "policy 1 of its list, order misaligned, has a parameter whose "
                                    "offset is no multiple of its type's alignment: weight");
    expect_refused("twice.so", "policy 2 of its list, order twin, is there already");
    expect_refused("no_ops.so", "policy 1 of its list, batching mute, has no ops for "
                                "its kind, or its kind is unknown");
    cr_expect_eq(count(), n_before);
}

Test(registry, a_text_file_is_no_plugin)
{
    struct ifl_error error = {0};
    cr_expect_eq(registry_load_plugin("meson.build", &error), IFL_E_INPUT);
    cr_expect_eq(strncmp(error.text, "not a plug-in: ", 15), 0, "%s", error.text);
}
