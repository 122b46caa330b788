/* Retries in a trace: its column retry_of names the row that a row repeats. */
#ifndef SIM_RUN_RETRIES_H
#define SIM_RUN_RETRIES_H

#include "inflight/trace.h"

/* Finds the retries in a trace. first_sent: for each row, the row that was sent first (the row
 * itself, unless it is a retry). repeats: a number above 0 that rows with the same prompt share; 0:
 * no row repeats it. A retry of a row that was cut from the trace counts as sent first itself. Both
 * arrays have n elements, and the caller frees them, after an error, too. Returns IFL_E_INPUT if a
 * row repeats itself, or a row with a prompt of another length. */
int retries_find(const struct ifl_trace *trace, uint32_t **first_sent, uint64_t **repeats,
                 struct ifl_error *error);

#endif
