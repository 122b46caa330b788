/* Modules: shared objects inflight_NAME.so that the program loads when it needs them, so that it
 * links none of their libraries, and starts without them. */
#ifndef SIM_BASE_MODULE_H
#define SIM_BASE_MODULE_H

#include <stdbool.h>

#include "base/program.h"
#include "inflight/error.h"

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

/* A part of this program that needs a library which few commands use. */
struct module_part {
    const char *name, *built; /* as in module_find; the symbol is inflight_NAME */
    const char *what, *needs; /* "the load client", "libcurl (-Dreplay=enabled)" */
    size_t n_bytes;           /* of the struct that the symbol names, which begins with its size */
};

/* That struct; NULL, and one line that says what is missing, where there is none. */
const void *module_load(const struct module_part *part, struct ifl_error *error);

#endif
