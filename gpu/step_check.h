/* Could an engine be opened for this, and is a step one that it could run? Everything an engine
 * indexes with is checked here, once, before anything is touched. */
#ifndef GPU_STEP_CHECK_H
#define GPU_STEP_CHECK_H

#include "inflight/engine.h"

/* IFL_E_INPUT and one line where there is nothing to compute with. */
int limits_check(const struct ifl_engine_options *options, struct ifl_error *error);

/* IFL_E_INPUT and one line where a type is asked for that is none of the executor's two. */
int dtype_check(enum ifl_engine_dtype asked, enum ifl_engine_dtype one, enum ifl_engine_dtype other,
                const char *executor, struct ifl_error *error);

/* IFL_E_DEVICE and one line where a limit is exceeded or a number is out of range. */
int step_check(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
               struct ifl_error *error);

/* IFL_E_DEVICE and one line where the pool has no such block. */
int block_check(const struct ifl_engine_options *limits, enum ifl_engine_pool pool, uint32_t block,
                struct ifl_error *error);

#endif
