#include "cli/crew.h"

#include <pthread.h>
#include <stdlib.h>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "inflight/minmax.h"

struct shift {
    struct crew *crew;
    pthread_mutex_t lock;
    size_t failed_point; /* the lowest point of this rank that ends the study */
    struct ifl_error error;
};

static void note_failure(struct shift *shift, size_t point, const struct ifl_error *error)
{
    pthread_mutex_lock(&shift->lock);
    if (point < shift->failed_point) {
        shift->failed_point = point;
        shift->error = *error;
    }
    pthread_mutex_unlock(&shift->lock);
}

static int fly(struct crew *crew, size_t point, struct ifl_error *error)
{
    if (interrupt_asked)
        return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
    const int code = crew->done(crew->context, point) ? 0 : crew->fly(crew->context, point, error);
    ranks_add(RANKS_REQUESTS, atomic_exchange(&crew->n_ended, 0));
    ranks_add(RANKS_POINTS, 1);
    return code;
}

static void *work(void *context)
{
    struct shift *shift = context;
    struct crew *crew = shift->crew;
    struct ifl_error error;
    size_t point;
    while ((point = (size_t)ranks_add(RANKS_CLAIMED, 1)) < crew->n_points)
        if (fly(crew, point, &error) < 0) {
            note_failure(shift, point, &error);
            ranks_add(RANKS_CLAIMED, crew->n_points); /* claims all that is left */
            break;
        }
    return NULL;
}

static void work_on_threads(struct shift *shift, pthread_t *threads, size_t n)
{
    size_t n_started = 0;
    while (n_started < n && pthread_create(&threads[n_started], NULL, work, shift) == 0)
        n_started++;
    if (n_started == 0)
        work(shift);
    for (size_t i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
}

int crew_work(struct crew *crew, struct ifl_error *error)
{
    struct shift shift = {
        .crew = crew, .lock = PTHREAD_MUTEX_INITIALIZER, .failed_point = crew->n_points};
    const size_t most = (size_t)crew->n_threads;
    const size_t n = ifl_min(most, crew->n_points);
    pthread_t *threads = calloc(n + 1, sizeof *threads);
    struct progress progress = {.n_ended = &crew->n_ended,
                                .n_begun = &crew->n_begun,
                                .n_points = crew->n_points,
                                .quiet = crew->quiet};
    interrupt_catch();
    progress_start(&progress);
    work_on_threads(&shift, threads, threads ? n : 0); /* without memory: this thread */
    free(threads);
    const int code =
        ranks_agree(shift.failed_point < crew->n_points ? shift.error.code : 0, &shift.error);
    progress_stop(&progress);
    *error = shift.error;
    return code;
}
