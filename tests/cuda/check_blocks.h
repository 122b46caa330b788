/* Blocks that are swapped, copied, carried, moved beside steps and spoilt, on the CUDA engine. */
#ifndef TESTS_CUDA_CHECK_BLOCKS_H
#define TESTS_CUDA_CHECK_BLOCKS_H

#include "driver.h"

void check_blocks(struct driver *driver, enum ifl_engine_dtype kv_dtype);

#endif
