#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 30, TICK_MS = 100 };

static void draw(const struct progress *progress)
{
    const unsigned long long ended = atomic_load(progress->n_ended);
    const unsigned long long begun = atomic_load(progress->n_requests);
    const unsigned long long done = atomic_load(progress->n_points_done);
    const double in_flight = begun ? (double)ended / (double)begun : 0;
    const double all =
        progress->n_points == 1 ? in_flight : (double)done / (double)progress->n_points;
    const int filled = (int)(all * BAR_WIDTH);
    char bar[BAR_WIDTH + 1] = {0};
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    fprintf(stderr, "\r[%s] %3.0f%%  %llu of %zu points, %llu requests\033[K", bar, 100 * all, done,
            progress->n_points, ended);
}

static void *keep_drawing(void *context)
{
    struct progress *progress = context;
    const struct timespec tick = {0, TICK_MS * 1000000L};
    while (!atomic_load(&progress->stopping)) {
        nanosleep(&tick, NULL);
        draw(progress);
    }
    fprintf(stderr, "\r\033[K");
    return NULL;
}

void progress_start(struct progress *progress)
{
    progress->running = !progress->quiet && isatty(STDERR_FILENO) &&
                        pthread_create(&progress->thread, NULL, keep_drawing, progress) == 0;
}

void progress_stop(struct progress *progress)
{
    if (!progress->running)
        return;
    atomic_store(&progress->stopping, true);
    pthread_join(progress->thread, NULL);
}
