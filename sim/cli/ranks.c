/* One rank, or the ranks of the module inflight_mpi. MPI's libraries take as long to load as a
 * short run, so they are loaded only if a launcher has started this process. */
#include "cli/ranks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/module.h"

#ifdef INFLIGHT_MPI
enum { BUILT_WITH_MPI = true };
#else
enum { BUILT_WITH_MPI = false };
#endif

static atomic_ullong own_counters[RANKS_N_COUNTERS]; /* where there is one rank */
static const struct ranks_module *module;            /* NULL: not started by a launcher */
static bool begun;                                   /* by ranks_join */

/* Variables that launchers set: Open MPI; PMIx of Slurm and others; MPICH and its relatives. A
 * process without a launcher skips MPI_Init, which is slow; without MPI each process is alone. */
static bool launched_by_mpi(void)
{
    return BUILT_WITH_MPI &&
           (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK"));
}

static int load(struct ifl_error *error)
{
    static const struct ifl_module wanted = {
        .name = "mpi",
        .built = "sim",
        .what = "a run on several ranks",
        .needs = "MPI (-Dmpi=enabled, libopenmpi-dev)",
        .n_bytes = sizeof *module,
    };
    module = module_load(&wanted, error);
    return module ? 0 : error->code;
}

int ranks_join(struct ifl_error *error)
{
    ifl_assert(!begun);
    begun = true;
    if (launched_by_mpi() && load(error) < 0)
        return error->code;
    return module ? module->join(error) : 0;
}

void ranks_leave(void)
{
    ifl_assert(begun);
    if (module)
        module->leave();
}

static bool alone(void)
{
    return !module || module->n() == 1;
}

int ranks_n(void)
{
    ifl_assert(begun);
    return alone() ? 1 : module->n();
}

int ranks_own(void)
{
    ifl_assert(begun);
    return alone() ? 0 : module->own();
}

uint64_t ranks_add(enum ranks_counter counter, uint64_t n)
{
    ifl_assert(begun);
    return alone() ? atomic_fetch_add(&own_counters[counter], n) : module->add(counter, n);
}

void ranks_meet(void)
{
    ifl_assert(begun);
    if (!alone())
        module->meet();
}

int ranks_agree(int code, struct ifl_error *error)
{
    ifl_assert(begun);
    return alone() ? code : module->agree(code, error);
}
