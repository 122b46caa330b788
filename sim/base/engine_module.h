/* Loads the module of an engine, once a process. Names and sizes of the data types that engines
 * compute with. */
#ifndef SIM_BASE_ENGINE_MODULE_H
#define SIM_BASE_ENGINE_MODULE_H

#include "inflight/engine.h"

/* The module inflight_NAME.so, by its full path: from the folder INFLIGHT_ENGINE_DIR of the
 * environment, else from the build folder of this program, else as installed. It stays loaded.
 * NULL, and one line that says what is missing, where there is none. */
const struct ifl_engine *engine_module_load(const char *name, struct ifl_error *error);

/* A data type of weights and activations, or of K and V, by its name; false if there is none of
 * that name. */
bool engine_dtype_named(const char *name, enum ifl_engine_dtype *dtype);
bool engine_kv_dtype_named(const char *name, enum ifl_engine_dtype *dtype);
/* Bytes of an element of K and V; 0 for auto. */
int32_t engine_kv_dtype_bytes(enum ifl_engine_dtype dtype);
/* Names of the data types that an executor (cpu, cuda) takes, as an error lists them; for another
 * executor, of all. */
const char *engine_dtype_names(const char *executor);
const char *engine_kv_dtype_names(const char *executor);

#endif
