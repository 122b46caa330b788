#include "base/engine_module.h"

#include <string.h>

#include "base/guard.h"
#include "base/module.h"

/* INFLIGHT_ENGINE_DIR names the one folder that is looked into. */
static bool find(const char *name, char path[MODULE_PATH_BYTES], char looked[MODULE_LOOKED_BYTES])
{
    const char *chosen = getenv("INFLIGHT_ENGINE_DIR");
    char built[96];
    *looked = '\0';
    if (chosen)
        return module_is_in(chosen, name, path, looked);
    snprintf(built, sizeof built, "gpu/%.64s", name);
    return module_find(name, built, path, looked);
}

/* ---- loading and checking ---- */

static int check(const struct ifl_engine *engine, const char *path, struct ifl_error *error)
{
    if (engine->abi != IFL_ENGINE_ABI)
        return ifl_fail_at(error, path, 0, 0, "engine ABI %u, expected %u: build it anew",
                           (unsigned)engine->abi, IFL_ENGINE_ABI);
    if (engine->engine_bytes != sizeof(struct ifl_engine) ||
        engine->options_bytes != sizeof(struct ifl_engine_options) ||
        engine->step_bytes != sizeof(struct ifl_engine_step))
        return ifl_fail_at(error, path, 0, 0,
                           "its structs have %zu, %zu and %zu bytes, expected %zu, %zu and %zu: "
                           "build it anew",
                           engine->engine_bytes, engine->options_bytes, engine->step_bytes,
                           sizeof(struct ifl_engine), sizeof(struct ifl_engine_options),
                           sizeof(struct ifl_engine_step));
    if (!engine->name || !engine->open || !engine->step || !engine->block_bytes ||
        !engine->read_block || !engine->write_block || !engine->close)
        return ifl_fail_at(error, path, 0, 0, "its engine lacks a function");
    return 0;
}

static const struct ifl_engine *load(const char *path, struct ifl_error *error)
{
    const struct ifl_engine *engine = module_symbol(path, IFL_ENGINE_SYMBOL, "an engine", error);
    return engine && check(engine, path, error) == 0 ? engine : NULL;
}

const struct ifl_engine *engine_module_load(const char *name, struct ifl_error *error)
{
    char path[MODULE_PATH_BYTES], looked[MODULE_LOOKED_BYTES];
    if (!find(name, path, looked)) {
        ifl_fail(error, IFL_E_INPUT,
                 "there is no engine module inflight_%s.so in %s: executor %s needs inflight built "
                 "with %s (INFLIGHT_ENGINE_DIR names the folder of a module built elsewhere)",
                 name, looked, name, strcmp(name, "cpu") == 0 ? "OpenBLAS" : "the CUDA toolkit");
        return NULL;
    }
    static char module[sizeof path + 16];
    static const struct guard_call call = {module, "loading"};
    snprintf(module, sizeof module, "engine %s", path);
    guard_arm();
    const struct guard_call *before = guard_enter(&call);
    const struct ifl_engine *engine = load(path, error);
    guard_leave(before);
    return engine;
}

/* ---- data types ---- */

static const struct {
    const char *name;
    int32_t n_bytes;
} dtypes[] = {
    [IFL_DTYPE_AUTO] = {"auto", 0}, [IFL_DTYPE_FP32] = {"fp32", 4}, [IFL_DTYPE_BF16] = {"bf16", 2},
    [IFL_DTYPE_FP16] = {"fp16", 2}, [IFL_DTYPE_FP8] = {"fp8", 1},
};

bool engine_kv_dtype_named(const char *name, enum ifl_engine_dtype *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *dtype = (enum ifl_engine_dtype)i;
            return true;
        }
    return false;
}

bool engine_dtype_named(const char *name, enum ifl_engine_dtype *dtype)
{
    return engine_kv_dtype_named(name, dtype) && *dtype != IFL_DTYPE_FP8;
}

int32_t engine_kv_dtype_bytes(enum ifl_engine_dtype dtype)
{
    return dtypes[dtype].n_bytes;
}

const char *engine_dtype_names(const char *executor)
{
    if (strcmp(executor, "cpu") == 0)
        return "auto or fp32";
    return strcmp(executor, "cuda") == 0 ? "auto, bf16 or fp16" : "auto, fp32, bf16 or fp16";
}

const char *engine_kv_dtype_names(const char *executor)
{
    if (strcmp(executor, "cpu") == 0)
        return "auto, fp32 or fp8";
    return strcmp(executor, "cuda") == 0 ? "auto, bf16, fp16 or fp8"
                                         : "auto, fp32, bf16, fp16, fp8, int8 or int4";
}
