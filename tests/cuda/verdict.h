/* Verdicts in TAP, for programs that also run on machines without Criterion. */
#ifndef TESTS_CUDA_VERDICT_H
#define TESTS_CUDA_VERDICT_H

#include <stdbool.h>

void verdict(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the plan; 0 if everything passed. */
int verdicts_end(void);

#endif
