#include "parallel.h"

#include <pthread.h>
#include <stdbool.h>

#include "inflight/assert.h"
#include "inflight/minmax.h"

enum { MAX_THREADS = 64 };

struct stretch {
    parallel_fn *work;
    void *context;
    size_t first, n;
    pthread_t thread;
    bool has_thread;
};

static void *run(void *argument)
{
    const struct stretch *stretch = argument;
    stretch->work(stretch->context, stretch->first, stretch->n);
    return NULL;
}

void parallel_for(int32_t n_threads, size_t n_items, size_t grain, parallel_fn *work, void *context)
{
    ifl_assert(n_threads >= 1 && grain > 0);
    struct stretch stretches[MAX_THREADS];
    const size_t n_grains = (n_items + grain - 1) / grain;
    const size_t most = n_threads < MAX_THREADS ? (size_t)n_threads : MAX_THREADS;
    const size_t n_stretches = ifl_min(n_grains, most);
    for (size_t i = 0; i < n_stretches; i++) {
        const size_t first = n_grains * i / n_stretches * grain;
        const size_t end = n_grains * (i + 1) / n_stretches * grain;
        struct stretch *s = &stretches[i];
        *s = (struct stretch){work, context, first, ifl_min(end, n_items) - first, 0, 0};
        s->has_thread = i + 1 < n_stretches && pthread_create(&s->thread, NULL, run, s) == 0;
        if (!s->has_thread)
            run(s);
    }
    for (size_t i = 0; i < n_stretches; i++)
        if (stretches[i].has_thread)
            pthread_join(stretches[i].thread, NULL);
}
