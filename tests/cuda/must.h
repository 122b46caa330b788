/* A step of a test without which nothing after it could be judged. */
#ifndef TESTS_CUDA_MUST_H
#define TESTS_CUDA_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

/* Bails out, as TAP has it, with the driver's error unless rc is 0. */
static inline void must(const struct driver *driver, int rc)
{
    if (rc == 0)
        return;
    printf("Bail out! %s\n", driver->error.text);
    exit(1);
}

#endif
