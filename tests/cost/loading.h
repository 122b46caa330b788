/* Models and profiles by name for the tests of the cost model; run in the source root. */
#ifndef TESTS_COST_LOADING_H
#define TESTS_COST_LOADING_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cost/hardware.h"
#include "cost/model.h"

static inline struct model load_model(const char *name)
{
    struct model model;
    struct ifl_error error = {0};
    cr_assert_eq(model_load(name, &model, &error), 0, "%s: %s", name, error.text);
    return model;
}

static inline struct platform load_platform(const char *name)
{
    struct platform platform;
    struct ifl_error error = {0};
    cr_assert_eq(hardware_load(name, &platform, &error), 0, "%s: %s", name, error.text);
    return platform;
}

static inline struct hardware load_hardware(const char *name)
{
    return load_platform(name).hardware;
}

/* Writes a file of its own under /tmp and leaves its path. */
static inline void write_temporary(const char *stem, const char *extension, const char *text,
                                   char path[64])
{
    snprintf(path, 64, "/tmp/%s-%ld.%s", stem, (long)getpid(), extension);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

/* The model of a Hugging Face config.json with that text. Its path is that of an error. */
static inline int load_config_json(const char *text, struct model *model, struct ifl_error *error)
{
    char path[64];
    write_temporary("inflight-config", "json", text, path);
    *error = (struct ifl_error){0};
    const int code = model_load(path, model, error);
    cr_expect(!code || strcmp(error->file, path) == 0, "%s", error->file);
    remove(path);
    return code;
}

/* It is refused in one line with these words, none of which is cut off. */
static inline void expect_config_json_refused(const char *text, const char *words)
{
    struct model model;
    struct ifl_error error;
    cr_expect_eq(load_config_json(text, &model, &error), IFL_E_INPUT, "%s", text);
    cr_expect_not_null(strstr(error.text, words), "%s: %s", text, error.text);
    cr_expect_null(strchr(error.text, '\n'), "%s", error.text);
    cr_expect_lt(strlen(error.text), sizeof error.text - 1, "%s", error.text);
}

#endif
