/* Without MPI a study has one rank. */
#include <stdatomic.h>
#include <stdbool.h>

#include "cli/ranks.h"

static atomic_ullong counters[RANKS_N_COUNTERS];

static bool begun; /* by ranks_join */

int ranks_join(struct ifl_error *error)
{
    ifl_assert(!begun);
    begun = true;
    (void)error;
    return 0;
}

void ranks_leave(void)
{
    ifl_assert(begun);
}

int ranks_n(void)
{
    ifl_assert(begun);
    return 1;
}

int ranks_own(void)
{
    ifl_assert(begun);
    return 0;
}

uint64_t ranks_add(enum ranks_counter counter, uint64_t n)
{
    ifl_assert(begun);
    return atomic_fetch_add(&counters[counter], n);
}

void ranks_meet(void)
{
    ifl_assert(begun);
}

int ranks_agree(int code, struct ifl_error *error)
{
    ifl_assert(begun);
    (void)error;
    return code;
}
