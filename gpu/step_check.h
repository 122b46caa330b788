/* Checks of the options that open an engine and of each step that it runs. Every number that an
 * engine uses as an index is checked here, once, before the engine changes any memory. */
#ifndef GPU_STEP_CHECK_H
#define GPU_STEP_CHECK_H

#include "inflight/engine.h"

/* IFL_E_INPUT and one line if the shapes or limits leave nothing to compute with. */
int limits_check(const struct ifl_engine_options *options, struct ifl_error *error);

/* IFL_E_INPUT and one line if the option asks for neither of the executor's two types. */
int dtype_check(const char *option, enum ifl_engine_dtype asked, enum ifl_engine_dtype one,
                enum ifl_engine_dtype other, const char *executor, struct ifl_error *error);

/* IFL_E_DEVICE and one line if a limit is exceeded or a number is out of range. */
int step_check(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
               struct ifl_error *error);

/* IFL_E_DEVICE and one line if the pool has no such block. */
int block_check(const struct ifl_engine_options *limits, enum ifl_engine_pool pool, uint32_t block,
                struct ifl_error *error);

/* As block_check, for n blocks of the device's pool. */
int blocks_check(const struct ifl_engine_options *limits, const uint32_t *blocks, size_t n,
                 struct ifl_error *error);

#endif
