/* Streams, events and graphs: the part of the CUDA runtime that orders operations. */
#include "fake_queue.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS_BYTES = 512, MAX_STREAMS = 32 };

struct op {
    struct op *next;
    double enqueued_us; /* not run before */
    int (*run)(const void *args);
    _Alignas(16) char args[MAX_ARGS_BYTES];
};

struct list {
    struct op *first, **end;
};

struct CUstream_st {
    struct list queue;
    struct CUgraph_st *capturing;
    double us; /* end of its last operation */
    bool is_hasty;
};

struct CUgraph_st {
    struct list ops;
};

/* Numbers of recordings, enqueued and run. */
struct CUevent_st {
    struct CUstream_st *stream;
    long n_recorded, n_run;
    double us;
};

static int sticky; /* as on a device, the first failure stays */
static double host_us;
static struct CUstream_st *running;

void fake_loads(void)
{
    host_us += FAKE_LOAD_US;
}

bool fake_is_captured(struct CUstream_st *stream)
{
    return stream->capturing != NULL;
}

void fake_takes(double us)
{
    running->us += us;
}

static double later(double a_us, double b_us)
{
    return a_us > b_us ? a_us : b_us;
}

/* ---- failing ---- */

static long n_calls, failing_call;

void fake_fail_call(long n)
{
    failing_call = n;
    n_calls = sticky = 0;
}

bool fake_fails(void)
{
    return ++n_calls == failing_call;
}

/* ---- lists ---- */

static void list_init(struct list *list)
{
    *list = (struct list){NULL, &list->first};
}

static int list_add(struct list *list, int (*run)(const void *), const void *args, size_t n_bytes)
{
    struct op *op = malloc(sizeof *op);
    if (!op)
        return cudaErrorMemoryAllocation;
    if (n_bytes > MAX_ARGS_BYTES)
        abort();
    *op = (struct op){.run = run, .enqueued_us = host_us};
    memcpy(op->args, args, n_bytes);
    *list->end = op;
    list->end = &op->next;
    return cudaSuccess;
}

static struct op *list_take(struct list *list)
{
    struct op *op = list->first;
    if (op && !(list->first = op->next))
        list->end = &list->first;
    return op;
}

static void list_clear(struct list *list)
{
    for (struct op *op; (op = list_take(list));)
        free(op);
}

/* ---- running ---- */

static bool run_one(struct CUstream_st *stream)
{
    struct op *op = list_take(&stream->queue);
    if (!op)
        return false;
    struct CUstream_st *const around = running;
    running = stream;
    stream->us = later(stream->us, op->enqueued_us);
    const int failed = op->run(op->args);
    sticky = sticky ? sticky : failed;
    running = around;
    free(op);
    return true;
}

int fake_enqueue(struct CUstream_st *stream, int (*run)(const void *), const void *args,
                 size_t n_bytes)
{
    if (fake_fails())
        return cudaErrorLaunchFailure;
    host_us += FAKE_CALL_US;
    if (stream->capturing)
        return list_add(&stream->capturing->ops, run, args, n_bytes);
    const int failed = list_add(&stream->queue, run, args, n_bytes);
    while (!failed && stream->is_hasty && run_one(stream))
        ;
    return failed;
}

static struct CUstream_st *streams[MAX_STREAMS];

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    *stream = fake_fails() ? NULL : calloc(1, sizeof **stream);
    if (!*stream)
        return cudaErrorMemoryAllocation;
    list_init(&(*stream)->queue);
    const char *hasty = getenv("FAKE_HASTY");
    size_t i = 0;
    while (i < MAX_STREAMS && streams[i])
        i++;
    if (i == MAX_STREAMS)
        abort();
    streams[i] = *stream;
    (*stream)->is_hasty = hasty && strtol(hasty, NULL, 10) >> i & 1;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    for (size_t i = 0; i < MAX_STREAMS; i++)
        streams[i] = streams[i] == stream ? NULL : streams[i];
    list_clear(&stream->queue);
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    while (run_one(stream))
        ;
    host_us = later(host_us, stream->us);
    return (cudaError_t)sticky;
}

bool fake_hangs;

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    const cudaError_t failed = fake_hangs ? cudaErrorNotReady : cudaStreamSynchronize(stream);
    return fake_fails() ? cudaErrorLaunchFailure : failed;
}

cudaError_t cudaDeviceSynchronize(void)
{
    for (size_t i = 0; i < MAX_STREAMS; i++)
        if (streams[i])
            cudaStreamSynchronize(streams[i]);
    return (cudaError_t)sticky;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = fake_fails() ? NULL : calloc(1, sizeof **event);
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

static int record(const void *args)
{
    struct CUevent_st *event = *(struct CUevent_st *const *)args;
    event->us = running->us;
    event->n_run++;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->stream = stream;
    event->n_recorded++;
    return (cudaError_t)fake_enqueue(stream, record, &event, sizeof event);
}

struct wait {
    struct CUevent_st *event;
    long n_recorded; /* as of the call that waits */
};

static int await(const void *args)
{
    const struct wait *wait = args;
    double *waits_us = running ? &running->us : &host_us;
    while (wait->event->n_run < wait->n_recorded && run_one(wait->event->stream))
        ;
    *waits_us = later(*waits_us, wait->event->us);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    const struct wait wait = {event, event->n_recorded};
    (void)flags;
    return (cudaError_t)fake_enqueue(stream, await, &wait, sizeof wait);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const struct wait wait = {event, event->n_recorded};
    await(&wait);
    return fake_fails() ? cudaErrorLaunchFailure : (cudaError_t)sticky;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return fake_hangs ? cudaErrorNotReady : cudaEventSynchronize(event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = (float)((to->us - from->us) * 1e-3);
    return fake_fails() ? cudaErrorInvalidResourceHandle : (cudaError_t)sticky;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    struct CUgraph_st *graph = fake_fails() ? NULL : calloc(1, sizeof *graph);
    if (!graph)
        return cudaErrorMemoryAllocation;
    list_init(&graph->ops);
    stream->capturing = graph;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = stream->capturing;
    stream->capturing = NULL;
    return fake_fails() ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

/* The executable graph takes the operations over. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    struct CUgraph_st *copy = fake_fails() ? NULL : calloc(1, sizeof *copy);
    (void)flags;
    if (!copy)
        return cudaErrorMemoryAllocation;
    list_init(&copy->ops);
    for (struct op *op; (op = list_take(&graph->ops));) {
        list_add(&copy->ops, op->run, op->args, sizeof op->args);
        free(op);
    }
    fake_loads();
    *exec = (cudaGraphExec_t)(void *)copy;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    list_clear(&graph->ops);
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return cudaGraphDestroy((cudaGraph_t)(void *)exec);
}

static int run_graph(const void *args)
{
    const struct CUgraph_st *graph = *(struct CUgraph_st *const *)args;
    int failed = cudaSuccess;
    for (const struct op *op = graph->ops.first; op && !failed; op = op->next)
        failed = op->run(op->args);
    return failed;
}

int fake_n_graphs;

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    fake_n_graphs++;
    return (cudaError_t)fake_enqueue(stream, run_graph, &exec, sizeof exec);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    (void)exec, (void)stream;
    return fake_fails() ? cudaErrorMemoryAllocation : cudaSuccess;
}
