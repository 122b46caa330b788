/* Finds an engine's module and loads it, once a program. */
#ifndef SIM_ENGINE_MODULE_H
#define SIM_ENGINE_MODULE_H

#include "inflight/engine.h"

/* The module inflight_NAME.so, by its full path: from the folder INFLIGHT_ENGINE_DIR of the
 * environment, else from the build folder of this program, else as installed. It stays loaded.
 * NULL, and one line that says what is missing, where there is none. */
const struct ifl_engine *engine_module_load(const char *name, struct ifl_error *error);

#endif
