/* What holds of every random set-up that has flown. All of it is asserted, with its seed. */
#ifndef TESTS_SIM_FLOWN_H
#define TESTS_SIM_FLOWN_H

#include "fixture.h"

/* Flies it: no error, and nothing that the inspector complains of. */
void flown_well(struct fixture *f, uint64_t seed);
/* Every request of the trace has ended once, and one that finished has all its tokens. */
void flown_each_once(const struct fixture *f, uint64_t seed);
/* Two runs that differ in their steady runs alone recorded the same requests, in as many steps. */
void flown_same_requests(const struct fixture *a, const struct fixture *b, uint64_t seed);
/* The same steps, too. */
void flown_same_steps(const struct fixture *a, const struct fixture *b, uint64_t seed);

#endif
