/* inflight calibrate: measures the time that this machine takes for each operation of an engine. */
#include <stdio.h>

#include "base/engine_module.h"
#include "base/new_file.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
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

struct request {
    const char *engine, *path, *model_name, *dtype;
    long long n_threads, n_runs, n_blocks;
    struct text_list rest;
};

static int run_command(int argc, char **argv)
{
    struct request request = {
        .model_name = "llama-160m", .dtype = "auto", .n_threads = 1, .n_runs = 15};
    struct ifl_error error;
    if (options_read(&command_calibrate, &request, argc, argv, &request.rest) < 0)
        return 2;
    if (!request.engine || !request.path || request.rest.n > 0)
        return usage_fail(&command_calibrate);
    if (cli_check_int32("calibrate", "--threads", request.n_threads) < 0 ||
        cli_check_int32("calibrate", "--runs", request.n_runs) < 0 ||
        cli_check_int32("calibrate", "--blocks", request.n_blocks) < 0)
        return 2;
    struct model model;
    struct calibration calibration = {.engine = request.engine,
                                      .model = &model,
                                      .n_threads = (int32_t)request.n_threads,
                                      .max_runs = (int32_t)request.n_runs,
                                      .n_blocks = (int32_t)request.n_blocks,
                                      .stop = &interrupt_asked};
    interrupt_catch();
    if (dtype_read(request.dtype, request.engine, &calibration.dtype, &error) ||
        model_load(request.model_name, &model, &error) ||
        write_sheet(&calibration, request.path, &error))
        return cli_fail(&error);
    return 0;
}

static const struct option_spec options[] = {
    {"--engine", NULL, OPTION_TEXT, offsetof(struct request, engine), "cpu|cuda",
     "engine whose operations are timed", COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, path), "FILE.csv",
     "file for the measurements", COMPLETE_FILE},
    {"--model", NULL, OPTION_TEXT, offsetof(struct request, model_name), "MODEL",
     "model whose shapes are timed, with random weights (llama-160m)", COMPLETE_MODEL},
    {"--dtype", NULL, OPTION_TEXT, offsetof(struct request, dtype), "auto|fp32|bf16|fp16",
     "data type of the weights: fp32 on cpu, bf16 or fp16 on cuda (auto)", COMPLETE_NOTHING},
    {"--threads", NULL, OPTION_COUNT, offsetof(struct request, n_threads), "N",
     "threads of the cpu engine (1)", COMPLETE_NOTHING},
    {"--runs", NULL, OPTION_COUNT, offsetof(struct request, n_runs), "N",
     "most runs per shape (15)", COMPLETE_NOTHING},
    {"--blocks", NULL, OPTION_COUNT, offsetof(struct request, n_blocks), "N",
     "K/V blocks; 0: as many as fit (0)", COMPLETE_NOTHING},
};

const struct command command_calibrate = {
    .name = "calibrate",
    .doc = "measure the time of an engine's operations on this machine",
    .arguments = "--engine cpu|cuda -o FILE.csv",
    .example = "inflight calibrate --engine cpu -o cpu.csv",
    .completion = COMPLETE_NOTHING,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
