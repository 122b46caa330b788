#include "base/engine_module.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/program.h"

enum { MAX_PATH = PROGRAM_PATH_BYTES + 128 };

/* ---- finding the file ---- */

/* Looks for the module in a folder; what was looked at goes to `looked`. */
static bool is_in(const char *folder, const char *name, char path[MAX_PATH], char looked[512])
{
    const size_t n = strlen(looked);
    snprintf(path, MAX_PATH, "%.4100s/inflight_%.64s.so", folder, name);
    snprintf(looked + n, 512 - n, "%s%.150s", n ? ", " : "", folder);
    return access(path, R_OK) == 0;
}

static bool find(const char *name, char path[MAX_PATH], char looked[512])
{
    const char *chosen = getenv("INFLIGHT_ENGINE_DIR");
    char folder[PROGRAM_PATH_BYTES], built[MAX_PATH];
    *looked = '\0';
    if (chosen)
        return is_in(chosen, name, path, looked);
    program_folder(folder);
    snprintf(built, sizeof built, "%s/gpu/%.64s", folder, name);
    if (*folder && is_in(built, name, path, looked))
        return true;
    for (size_t i = 0; program_place(PROGRAM_ENGINES, i, folder); i++)
        if (is_in(folder, name, path, looked))
            return true;
    return false;
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

static const struct ifl_engine *engine_of(void *library, const char *path, struct ifl_error *error)
{
    const struct ifl_engine *engine = dlsym(library, IFL_ENGINE_SYMBOL);
    if (!engine)
        ifl_fail_at(error, path, 0, 0, "no symbol %s, expected an engine", IFL_ENGINE_SYMBOL);
    return engine && check(engine, path, error) == 0 ? engine : NULL;
}

/* Runs the constructors of the library. */
static const struct ifl_engine *load(const char *path, struct ifl_error *error)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        ifl_fail_at(error, path, 0, 0, "not an engine: %s", dlerror());
        return NULL;
    }
    const struct ifl_engine *engine = engine_of(library, path, error);
    if (!engine)
        dlclose(library);
    return engine;
}

const struct ifl_engine *engine_module_load(const char *name, struct ifl_error *error)
{
    char path[MAX_PATH], looked[512];
    if (!find(name, path, looked)) {
        ifl_fail(error, IFL_E_INPUT,
                 "there is no engine module inflight_%s.so in %s: executor %s needs inflight built "
                 "with %s (INFLIGHT_ENGINE_DIR names the folder of a module built elsewhere)",
                 name, looked, name, strcmp(name, "cpu") == 0 ? "OpenBLAS" : "the CUDA toolkit");
        return NULL;
    }
    static char who[sizeof path + 16];
    static const struct guard_call call = {who, "loading"};
    snprintf(who, sizeof who, "engine %s", path);
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
