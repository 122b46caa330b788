/* Without MPI a study has one rank. */
#include <stdatomic.h>

#include "cli/ranks.h"

static atomic_ullong counters[RANKS_N_COUNTERS];

int ranks_join(struct ifl_error *error)
{
    (void)error;
    return 0;
}

void ranks_leave(void) {}

int ranks_n(void)
{
    return 1;
}

int ranks_own(void)
{
    return 0;
}

uint64_t ranks_add(enum ranks_counter counter, uint64_t n)
{
    return atomic_fetch_add(&counters[counter], n);
}

void ranks_meet(void) {}

int ranks_agree(int code, struct ifl_error *error)
{
    (void)error;
    return code;
}
