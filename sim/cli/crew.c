#include "cli/crew.h"

#include <pthread.h>
#include <stdio.h>
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
    const bool done = crew->done(crew->context, point);
    const int code = done ? 0 : crew->fly(crew->context, point, error);
    ranks_add(RANKS_SKIPPED, done);
    ranks_add(RANKS_REQUESTS, atomic_exchange(&crew->n_ended, 0));
    ranks_add(RANKS_POINTS, 1);
    return code;
}

/* What an earlier run has done took no time, and so says nothing of the time that is left. */
static double share_of_points(const struct crew *crew, size_t n_done, double in_flight)
{
    const size_t n_skipped = (size_t)ranks_add(RANKS_SKIPPED, 0);
    if (n_done >= crew->n_points)
        return 1;
    if (crew->n_points == 1)
        return in_flight;
    return n_skipped < crew->n_points ? (double)(n_done - ifl_min(n_skipped, n_done)) /
                                            (double)(crew->n_points - n_skipped)
                                      : 1;
}

static void look(void *context, struct progress_state *state)
{
    struct crew *crew = context;
    const unsigned long long ended = atomic_load(&crew->n_ended);
    const unsigned long long begun = atomic_load(&crew->n_begun);
    const size_t n_done = (size_t)ranks_add(RANKS_POINTS, 0);
    const unsigned long long requests = ranks_add(RANKS_REQUESTS, 0) + ended;
    char more[80] = "";
    state->done_frac =
        crew->share ? crew->share(crew->context, n_done, more)
                    : share_of_points(crew, n_done, begun ? (double)ended / (double)begun : 0);
    snprintf(state->text, sizeof state->text, "%zu of %zu %s, %s%llu requests", n_done,
             crew->n_points, crew->share ? "searches" : "points", more, requests);
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
    struct progress progress = {.look = look,
                                .context = crew,
                                .quiet = crew->quiet || ranks_own() != 0,
                                .in_lines = ranks_n() > 1};
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
