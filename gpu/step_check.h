/* Is a step one that this engine could run? Everything an engine indexes with is checked here,
 * once, before anything is touched. */
#ifndef GPU_STEP_CHECK_H
#define GPU_STEP_CHECK_H

#include "inflight/engine.h"

/* IFL_E_DEVICE and one line where a limit is exceeded or a number is out of range. */
int step_check(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
               struct ifl_error *error);

#endif
