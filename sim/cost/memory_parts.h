/* Functions that the rules of memory.h and memory_engine.h share. */
#ifndef SIM_COST_MEMORY_PARTS_H
#define SIM_COST_MEMORY_PARTS_H

#include "cost/memory.h"

enum { MEMORY_TEXT_BYTES = 640 };

/* Fills the parts that do not depend on how a system counts weights. `gpu_bytes` is the memory that
 * the system assumes the GPU to have. */
int memory_start_plan(const struct model *model, const struct memory_options *options,
                      double gpu_bytes, struct memory_plan *plan, struct ifl_error *error);
/* Returns the number of whole blocks in that memory; 0 if it is negative. */
int32_t memory_blocks(int64_t kv_bytes, int64_t block_bytes);
/* Writes in one line how the plan's kv_bytes were computed. */
void memory_arithmetic(const struct memory_plan *plan, char *text, size_t n_bytes);
/* IFL_E_INPUT, with the arithmetic, if the plan has not even one block. */
int memory_judge(const struct model *model, const struct hardware *hardware,
                 const struct memory_plan *plan, struct ifl_error *error);

#endif
