/* Random set-ups of every policy, for tests of what must hold in all of them. */
#ifndef TESTS_SIM_RANDOM_SETUP_H
#define TESTS_SIM_RANDOM_SETUP_H

#include "dice.h"
#include "fixture.h"

enum { RANDOM_MAX_REQUESTS = 60, RANDOM_CLIENTS = 3, RANDOM_ADAPTERS = FIXTURE_MAX_ADAPTERS };

/* Modules, requests, memory and clients of that seed. The caller frees with fixture_free. */
void roll_setup(struct fixture *f, uint64_t seed);
/* Adapters for such a set-up: in slots or in the pool, with what they cost. */
void roll_adapters(struct fixture *f, uint64_t seed);

#endif
