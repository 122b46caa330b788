/* Loads the module of an engine, once per process. Also the names and sizes of the data types with
 * which engines compute. */
#ifndef SIM_BASE_ENGINE_MODULE_H
#define SIM_BASE_ENGINE_MODULE_H

#include "inflight/engine.h"

/* Loads the module inflight_NAME.so: from the folder INFLIGHT_ENGINE_DIR of the environment, else
 * from the build folder of this program, else from where it was installed. The module stays loaded.
 * Returns NULL, with one line in `error` that says what is missing, if there is no such module. */
const struct ifl_engine *engine_module_load(const char *name, struct ifl_error *error);

/* Look up a data type by its name: of weights and activations; of K and V. Return false if there is
 * none of that name. */
bool engine_dtype_named(const char *name, enum ifl_engine_dtype *dtype);
bool engine_kv_dtype_named(const char *name, enum ifl_engine_dtype *dtype);
/* Bytes of an element of K and V; 0 for auto. */
int32_t engine_kv_dtype_bytes(enum ifl_engine_dtype dtype);
/* Names, for error messages, of the data types that an executor (cpu, cuda) takes; for any other
 * executor, of all data types. */
const char *engine_dtype_names(const char *executor);
const char *engine_kv_dtype_names(const char *executor);

#endif
