#include "base/module.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "inflight/inputs.h"

/* ---- finding the file ---- */

bool module_is_in(const char *folder, const char *name, char path[MODULE_PATH_BYTES],
                  char looked[MODULE_LOOKED_BYTES])
{
    const size_t n = strlen(looked);
    snprintf(path, MODULE_PATH_BYTES, "%.4100s/inflight_%.64s.so", folder, name);
    snprintf(looked + n, MODULE_LOOKED_BYTES - n, "%s%.150s", n ? ", " : "", folder);
    return access(path, R_OK) == 0;
}

bool module_find(const char *name, const char *built, char path[MODULE_PATH_BYTES],
                 char looked[MODULE_LOOKED_BYTES])
{
    char folder[PROGRAM_PATH_BYTES], below[MODULE_PATH_BYTES];
    program_folder(folder);
    snprintf(below, sizeof below, "%s/%.64s", folder, built);
    if (*folder && module_is_in(below, name, path, looked))
        return true;
    for (size_t i = 0; program_place(PROGRAM_MODULES, i, folder); i++)
        if (module_is_in(folder, name, path, looked))
            return true;
    return false;
}

/* ---- loading ---- */

const void *module_symbol(const char *path, const char *symbol, const char *what,
                          struct ifl_error *error)
{
    ifl_input_note(path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        ifl_fail_at(error, path, 0, 0, "not %s: %s", what, dlerror());
        return NULL;
    }
    const void *found = dlsym(library, symbol);
    if (!found) {
        ifl_fail_at(error, path, 0, 0, "no symbol %s, expected %s", symbol, what);
        dlclose(library);
    }
    return found;
}

const void *module_load(const struct ifl_module *module, struct ifl_error *error)
{
    char path[MODULE_PATH_BYTES], looked[MODULE_LOOKED_BYTES] = "", symbol[96];
    if (!module_find(module->name, module->built, path, looked)) {
        ifl_fail(error, IFL_E_DEVICE,
                 "there is no module inflight_%s.so in %s: %s needs inflight built with %s",
                 module->name, looked, module->what, module->needs);
        return NULL;
    }
    snprintf(symbol, sizeof symbol, "inflight_%.64s", module->name);
    const size_t *found = module_symbol(path, symbol, module->what, error);
    if (found && *found != module->n_bytes) {
        ifl_fail_at(error, path, 0, 0, "its struct %s has %zu bytes, expected %zu: build it anew",
                    symbol, *found, module->n_bytes);
        return NULL;
    }
    return found;
}
