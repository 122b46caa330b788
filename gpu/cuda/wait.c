#include "wait.h"

#include <time.h>

#include "try.h"

double wait_patience_s = 120;

static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct waiting {
    double since_s; /* 0: the first query is yet to come */
    atomic_bool *is_lost;
};

/* Whether to query again; else *rc is the result. */
static bool goes_on(struct waiting *waiting, cudaError_t answer, const char *query, int *rc,
                    struct ifl_error *error)
{
    *rc = 0;
    if (answer == cudaSuccess)
        return false;
    if (answer != cudaErrorNotReady) {
        *rc = cuda_fail(error, query, answer);
        return false;
    }
    const double now_s = clock_s();
    waiting->since_s = waiting->since_s > 0 ? waiting->since_s : now_s;
    if (now_s - waiting->since_s <= wait_patience_s)
        return true;
    *waiting->is_lost = true;
    *rc = ifl_fail(error, IFL_E_DEVICE,
                   "the device has not answered for %.0f s: it hangs, or its driver has lost it; "
                   "nvidia-smi and the kernel's log tell which",
                   wait_patience_s);
    return false;
}

int wait_event(cudaEvent_t event, atomic_bool *is_lost, struct ifl_error *error)
{
    struct waiting waiting = {.is_lost = is_lost};
    int rc;
    while (goes_on(&waiting, cudaEventQuery(event), "cudaEventQuery", &rc, error))
        ;
    return rc;
}

int wait_stream(cudaStream_t stream, atomic_bool *is_lost, struct ifl_error *error)
{
    struct waiting waiting = {.is_lost = is_lost};
    int rc;
    while (goes_on(&waiting, cudaStreamQuery(stream), "cudaStreamQuery", &rc, error))
        ;
    return rc;
}
