/* Finds and loads modules (inflight/module.h), engines among them. */
#ifndef SIM_BASE_MODULE_H
#define SIM_BASE_MODULE_H

#include <stdbool.h>

#include "base/program.h"
#include "inflight/module.h"

enum { MODULE_PATH_BYTES = PROGRAM_PATH_BYTES + 128, MODULE_LOOKED_BYTES = 512 };

/* True if the folder has the module: `path` is its file. Adds the folder to `looked`, which begins
 * as "". */
bool module_is_in(const char *folder, const char *name, char path[MODULE_PATH_BYTES],
                  char looked[MODULE_LOOKED_BYTES]);
/* As module_is_in, for all folders in which modules are built or installed; `built` is the folder
 * of a build, relative to that of the program. */
bool module_find(const char *name, const char *built, char path[MODULE_PATH_BYTES],
                 char looked[MODULE_LOOKED_BYTES]);

/* Loads the file for good, running its constructors, and returns what the symbol points to. Returns
 * NULL, with `error` set, if the file is no module, or not `what` ("an engine"). */
const void *module_symbol(const char *path, const char *symbol, const char *what,
                          struct ifl_error *error);

ifl_module_load_fn module_load;

#endif
