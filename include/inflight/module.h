/* Modules: parts of inflight that need a library which few commands use. A module is a shared
 * object inflight_NAME.so. The program loads it when a command needs it, so that it starts without
 * the library. */
#ifndef INFLIGHT_MODULE_H
#define INFLIGHT_MODULE_H

#include <stddef.h>

#include "inflight/error.h"

struct ifl_module {
    const char *name;         /* of the file, and of the symbol inflight_NAME in it */
    const char *built;        /* its build folder, relative to that of the program */
    const char *what, *needs; /* "the load client", "libcurl (-Dreplay=enabled)" */
    size_t n_bytes;           /* of the struct of that symbol, which begins with its size */
};

/* Returns that struct, which stays valid; NULL and one line that says what is missing if it cannot
 * be loaded. Threads may call it at the same time. */
typedef const void *ifl_module_load_fn(const struct ifl_module *module, struct ifl_error *error);

#endif
