/* Votes, and slots that are kept, on the CUDA engine against the dense reference. */
#ifndef TESTS_CUDA_CHECK_VOTES_H
#define TESTS_CUDA_CHECK_VOTES_H

#include "driver.h"

void check_votes(struct driver *driver);

#endif
