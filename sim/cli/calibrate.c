/* inflight calibrate: what this machine takes for each operation of an engine. */
#include <stdio.h>

#include "base/engine_module.h"
#include "base/new_file.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/usage.h"
#include "fit/calibrate/calibrate.h"

static int dtype_read(const char *text, const char *engine, enum ifl_engine_dtype *dtype,
                      struct ifl_error *error)
{
    if (engine_dtype_named(text, dtype))
        return 0;
    return ifl_fail(error, IFL_E_INPUT, "--dtype is \"%s\", expected %s", text,
                    engine_dtype_names(engine));
}

static int write_sheet(const struct calibration *calibration, const char *path,
                       struct ifl_error *error)
{
    struct new_file file;
    if (new_file_open(&file, path, error))
        return error->code;
    return new_file_close(&file, calibrate(calibration, file.out, error), error);
}

int cli_calibrate(int argc, char **argv)
{
    const char *engine = NULL, *path = NULL, *model_name = "llama-160m", *dtype = "auto";
    long long n_threads = 1, n_runs = 15, n_blocks = 0;
    struct text_list rest = {.n = 0};
    struct ifl_error error;
    const struct option_spec options[] = {
        {"--engine", NULL, OPTION_TEXT, &engine},    {"--output", "-o", OPTION_TEXT, &path},
        {"--model", NULL, OPTION_TEXT, &model_name}, {"--threads", NULL, OPTION_COUNT, &n_threads},
        {"--runs", NULL, OPTION_COUNT, &n_runs},     {"--blocks", NULL, OPTION_COUNT, &n_blocks},
        {"--dtype", NULL, OPTION_TEXT, &dtype},
    };
    if (options_read("calibrate", argc, argv, options, sizeof options / sizeof *options, &rest) < 0)
        return 2;
    if (!engine || !path || rest.n > 0)
        return usage_fail("calibrate");
    struct model model;
    struct calibration calibration = {.engine = engine,
                                      .model = &model,
                                      .n_threads = (int32_t)n_threads,
                                      .max_runs = (int32_t)n_runs,
                                      .n_blocks = (int32_t)n_blocks,
                                      .stop = &interrupt_asked};
    interrupt_catch();
    if (dtype_read(dtype, engine, &calibration.dtype, &error) ||
        model_load(model_name, &model, &error) || write_sheet(&calibration, path, &error))
        return cli_fail(&error);
    return 0;
}
