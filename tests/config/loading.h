/* Studies from text, for the tests of the configuration; run in the source root. The presets of
 * tests/config/fixtures stand for installed data. */
#ifndef TESTS_CONFIG_LOADING_H
#define TESTS_CONFIG_LOADING_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tree.h"
#include "config/config.h"

#define TRACE "workload: {trace: tests/config/fixtures/three.csv}\n"
#define LINEAR "cost: {model: linear, step_s: 0.01}\n"
#define SERVING "serving: {preset: small, kv: {num_blocks: 10}}\n"
/* The smallest configuration that can fly. */
#define SMALL TRACE LINEAR SERVING

struct loaded {
    int code;
    struct study *study; /* NULL after an error */
    char path[64];
    struct ifl_error error;
};

static inline struct loaded load_bytes(const char *text, size_t n_bytes, const char *const *sets,
                                       size_t n_sets)
{
    struct loaded loaded = {0};
    snprintf(loaded.path, sizeof loaded.path, "/tmp/inflight-config-%ld.yaml", (long)getpid());
    FILE *file = fopen(loaded.path, "w");
    cr_assert_not_null(file);
    fwrite(text, 1, n_bytes, file);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(setenv("INFLIGHT_DATA", "tests/config/fixtures", 1), 0);
    loaded.code = study_load(&(struct study_options){loaded.path, sets, n_sets}, &loaded.study,
                             &loaded.error);
    remove(loaded.path);
    return loaded;
}

static inline struct study *load_with(const char *text, const char *const *sets, size_t n_sets)
{
    struct loaded loaded = load_bytes(text, strlen(text), sets, n_sets);
    cr_assert_eq(loaded.code, 0, "%s:%d: %s", loaded.error.file, loaded.error.line,
                 loaded.error.text);
    return loaded.study;
}

static inline struct study *load(const char *text)
{
    return load_with(text, NULL, 0);
}

/* Loading the text fails at that line and column, with that message. */
static inline void expect_wrong(const char *text, int line, int column, const char *message)
{
    const struct loaded loaded = load_bytes(text, strlen(text), NULL, 0);
    cr_expect_eq(loaded.code, IFL_E_INPUT, "accepted: %s", text);
    cr_expect_null(loaded.study);
    if (loaded.code == 0)
        return;
    cr_expect_str_eq(loaded.error.file, loaded.path);
    cr_expect_str_eq(loaded.error.text, message, "%s", loaded.error.text);
    cr_expect_eq(loaded.error.line, line, "%s: line %d", message, loaded.error.line);
    cr_expect_eq(loaded.error.column, column, "%s: column %d", message, loaded.error.column);
}

static inline void expect_wrong_edit(const char *edit, const char *message)
{
    char name[300];
    const struct loaded loaded = load_bytes(SMALL, strlen(SMALL), &edit, 1);
    snprintf(name, sizeof name, "--set %s", edit);
    cr_expect_eq(loaded.code, IFL_E_INPUT, "accepted: %s", edit);
    cr_expect_str_eq(loaded.error.file, name);
    cr_expect_eq(loaded.error.line, 0);
    cr_expect_str_eq(loaded.error.text, message, "%s", loaded.error.text);
}

/* One of a few static configurations: good for several points in a statement. */
static inline const struct config *study_point(const struct study *study, size_t point)
{
    static struct config configs[4];
    static unsigned turn;
    struct config *config = &configs[turn++ % 4];
    struct ifl_error error;
    config_finish(config);
    cr_assert_eq(study_read(study, point, config, &error), 0, "%s", error.text);
    return config;
}

/* A module's policy and one of its parameters, as YAML: "static max_seqs=4". */
static inline const char *text_of(const struct module_config *module, const char *name)
{
    static char text[256];
    char value[128];
    snprintf(text, sizeof text, "%s", module->policy->name);
    for (size_t i = 0; name && i < module->policy->n_params; i++) {
        if (strcmp(module->policy->params[i].name, name) != 0)
            continue;
        field_print(&module->policy->params[i], module->params, value, sizeof value);
        snprintf(text, sizeof text, "%s %s=%s", module->policy->name, name, value);
    }
    return text;
}

static inline const char *module_text(const struct config *config, enum ifl_kind kind,
                                      const char *name)
{
    return text_of(&config->serving.modules[kind], name);
}

/* The same of the admit module at place i of a list. */
static inline const char *admit_text(const struct config *config, size_t i, const char *name)
{
    return text_of(serving_admit(&config->serving, i), name);
}

/* The text that study_write writes; the caller frees it. */
static inline char *written(const struct study *study)
{
    char *text = NULL;
    size_t n_bytes = 0;
    struct ifl_error error;
    FILE *out = open_memstream(&text, &n_bytes);
    cr_assert_not_null(out);
    cr_assert_eq(study_write(study, out, &error), 0);
    cr_assert_eq(fclose(out), 0);
    return text;
}

#endif
