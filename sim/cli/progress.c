#include "cli/progress.h"

#include <stdio.h>
#include <time.h>

#include "cli/ranks.h"
#include "cli/terminal.h"

enum { BAR_WIDTH = 30, TICK_MS = 100, TICKS_A_LINE = 100 };

const char *progress_erase(void)
{
    return terminal_is(stderr) ? "\r\033[K" : "";
}

/* A line that wraps could not be drawn over. */
static int most_letters(void)
{
    return terminal_columns(stderr) - 1;
}

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ", 4 min left"; empty before anything is done. */
static const char *time_left(const struct progress *progress, double done_frac, char text[32])
{
    const double elapsed_s = wall_s() - progress->start_s;
    const double left_s = elapsed_s * (1 - done_frac) / done_frac;
    text[0] = '\0';
    if (done_frac <= 0)
        return text;
    if (left_s < 120)
        snprintf(text, 32, ", %.0f s left", left_s);
    else if (left_s < 7200)
        snprintf(text, 32, ", %.0f min left", left_s / 60);
    else
        snprintf(text, 32, ", %.1f h left", left_s / 3600);
    return text;
}

static void draw(const struct progress *progress)
{
    const unsigned long long ended = atomic_load(progress->n_ended);
    const unsigned long long begun = atomic_load(progress->n_begun);
    const unsigned long long done = ranks_add(RANKS_POINTS, 0);
    const unsigned long long requests = ranks_add(RANKS_REQUESTS, 0) + ended;
    const double in_flight = begun ? (double)ended / (double)begun : 0;
    const double all =
        progress->n_points == 1 ? in_flight : (double)done / (double)progress->n_points;
    const int filled = (int)(all * BAR_WIDTH);
    char bar[BAR_WIDTH + 1] = {0}, left[32], line[256];
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    snprintf(line, sizeof line, "[%s] %3.0f%%  %llu of %zu points, %llu requests%s", bar, 100 * all,
             done, progress->n_points, requests, time_left(progress, all, left));
    if (progress->terminal)
        fprintf(stderr, "%s%.*s", progress_erase(), most_letters(), line);
    else
        fprintf(stderr, "%s\n", line);
}

static void *keep_drawing(void *context)
{
    struct progress *progress = context;
    const struct timespec tick = {0, TICK_MS * 1000000L};
    for (int i = 1; !atomic_load(&progress->stopping); i++) {
        nanosleep(&tick, NULL);
        if (progress->terminal || i % TICKS_A_LINE == 0)
            draw(progress);
    }
    if (progress->terminal)
        fputs(progress_erase(), stderr);
    return NULL;
}

void progress_start(struct progress *progress)
{
    progress->terminal = terminal_is(stderr);
    progress->start_s = wall_s();
    progress->running = !progress->quiet && ranks_own() == 0 &&
                        (progress->terminal || ranks_n() > 1) &&
                        pthread_create(&progress->thread, NULL, keep_drawing, progress) == 0;
}

void progress_stop(struct progress *progress)
{
    if (!progress->running)
        return;
    atomic_store(&progress->stopping, true);
    pthread_join(progress->thread, NULL);
}
