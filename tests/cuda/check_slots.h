/* Several rows of logits a sequence, and K/V slots that are not positions, on the CUDA engine. */
#ifndef TESTS_CUDA_CHECK_SLOTS_H
#define TESTS_CUDA_CHECK_SLOTS_H

#include "driver.h"

void check_slots(struct driver *driver);

#endif
