/* Ranks over MPI, the module inflight_mpi. The counters are a window of rank 0's memory. All ranks,
 * rank 0 included, read and raise them with MPI_Fetch_and_op.
 *
 * If the network has no atomic operations in hardware, MPI performs them while the target rank is
 * in an MPI call. Each rank therefore has a thread that calls MPI every millisecond; without this
 * thread a long point on rank 0 would keep the other ranks waiting. A lock allows one MPI call at a
 * time, as MPI_THREAD_SERIALIZED requires. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): dladdr */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "cli/ranks.h"

static struct {
    bool joined, pulses;
    int n, own;
    MPI_Win window;
    uint64_t *counters; /* [RANKS_N_COUNTERS] on rank 0, MPI's memory */
    pthread_mutex_t lock;
    pthread_t pulse;
    atomic_bool stopping;
} ranks = {.n = 1, .lock = PTHREAD_MUTEX_INITIALIZER};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000L}, NULL);
}

static void *keep_pulsing(void *context)
{
    int arrived;
    (void)context;
    while (!atomic_load(&ranks.stopping)) {
        sleep_ms(1);
        pthread_mutex_lock(&ranks.lock);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&ranks.lock);
    }
    return NULL;
}

static void open_counters(void)
{
    const MPI_Aint n_bytes =
        ranks.own == 0 ? (MPI_Aint)(RANKS_N_COUNTERS * sizeof *ranks.counters) : 0;
    MPI_Win_allocate(n_bytes, sizeof *ranks.counters, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &ranks.counters, &ranks.window);
    for (int i = 0; ranks.own == 0 && i < RANKS_N_COUNTERS; i++)
        ranks.counters[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, ranks.window);
}

/* Open MPI's components find its symbols only where all libraries do, and a module's libraries are
 * the module's own. */
static void show_symbols(void)
{
    Dl_info library;
    if (dladdr((void *)(uintptr_t)&MPI_Init_thread, &library) != 0)
        (void)dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

static int mpi_join(struct ifl_error *error)
{
    int given;
    show_symbols();
    /* Debian's Open MPI leaves out the one component that has windows over plain TCP. A value from
     * the environment or from mpirun is kept. */
    setenv("OMPI_MCA_osc", "^ucx", 0);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS)
        return ifl_fail(error, IFL_E_DEVICE, "MPI does not start");
    ranks.joined = true;
    if (given < MPI_THREAD_SERIALIZED)
        return ifl_fail(error, IFL_E_DEVICE, "this MPI has no support for threads");
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.n);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.own);
    if (ranks.n == 1)
        return 0;
    open_counters();
    ranks.pulses = pthread_create(&ranks.pulse, NULL, keep_pulsing, NULL) == 0;
    return 0;
}

/* Not MPI_Barrier, which would spin and keep the lock. */
static void mpi_meet(void)
{
    MPI_Request request;
    int met = 0;
    pthread_mutex_lock(&ranks.lock);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    pthread_mutex_unlock(&ranks.lock);
    while (!met) {
        pthread_mutex_lock(&ranks.lock);
        MPI_Test(&request, &met, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&ranks.lock);
        if (!met)
            sleep_ms(1);
    }
}

static void mpi_leave(void)
{
    if (ranks.pulses) {
        mpi_meet();
        atomic_store(&ranks.stopping, true);
        pthread_join(ranks.pulse, NULL);
    }
    if (ranks.n > 1) {
        MPI_Win_unlock_all(ranks.window);
        MPI_Win_free(&ranks.window);
    }
    if (ranks.joined)
        MPI_Finalize();
    ranks.joined = false;
}

static int mpi_n(void)
{
    return ranks.n;
}

static int mpi_own(void)
{
    return ranks.own;
}

static uint64_t mpi_add(enum ranks_counter counter, uint64_t n)
{
    uint64_t was;
    pthread_mutex_lock(&ranks.lock);
    MPI_Fetch_and_op(&n, &was, MPI_UINT64_T, 0, (MPI_Aint)counter, MPI_SUM, ranks.window);
    MPI_Win_flush(0, ranks.window);
    pthread_mutex_unlock(&ranks.lock);
    return was;
}

static int mpi_agree(int code, struct ifl_error *error)
{
    int own = code < 0 ? ranks.own : ranks.n, lowest;
    mpi_meet();
    pthread_mutex_lock(&ranks.lock);
    MPI_Allreduce(&own, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (lowest < ranks.n) {
        MPI_Bcast(error, sizeof *error, MPI_BYTE, lowest, MPI_COMM_WORLD);
        MPI_Bcast(&code, 1, MPI_INT, lowest, MPI_COMM_WORLD);
    }
    pthread_mutex_unlock(&ranks.lock);
    return lowest < ranks.n ? code : 0;
}

__attribute__((visibility("default"))) extern const struct ranks_module inflight_mpi;

const struct ranks_module inflight_mpi = {
    .n_bytes = sizeof inflight_mpi,
    .join = mpi_join,
    .leave = mpi_leave,
    .n = mpi_n,
    .own = mpi_own,
    .add = mpi_add,
    .meet = mpi_meet,
    .agree = mpi_agree,
};
