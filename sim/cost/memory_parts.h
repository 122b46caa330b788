/* What the rules of memory.h and memory_engine.h share. */
#ifndef SIM_COST_MEMORY_PARTS_H
#define SIM_COST_MEMORY_PARTS_H

#include "cost/memory.h"

enum { MEMORY_TEXT_BYTES = 640 };

/* Fills what does not depend on how a system weighs: `gpu_bytes` is what it takes the GPU to have.
 */
int memory_start_plan(const struct model *model, const struct memory_options *options,
                      double gpu_bytes, struct memory_plan *plan, struct ifl_error *error);
/* Whole blocks in that memory; 0 where it is negative. */
int32_t memory_blocks(int64_t kv_bytes, int64_t block_bytes);
/* How the plan comes by its kv_bytes, in one line. */
void memory_arithmetic(const struct memory_plan *plan, char *text, size_t n_bytes);
/* IFL_E_INPUT, with the arithmetic, if the plan has not even one block. */
int memory_judge(const struct model *model, const struct hardware *hardware,
                 const struct memory_plan *plan, struct ifl_error *error);

#endif
