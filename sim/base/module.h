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
/* The same for the folders that modules are built in and installed in; `built` is the folder below
 * that of the program in a build. */
bool module_find(const char *name, const char *built, char path[MODULE_PATH_BYTES],
                 char looked[MODULE_LOOKED_BYTES]);

/* What the symbol of the file points to, for good; runs its constructors. NULL: the file is not a
 * module, or not `what` ("an engine"), with the error filled in. */
const void *module_symbol(const char *path, const char *symbol, const char *what,
                          struct ifl_error *error);

ifl_module_load_fn module_load;

#endif
