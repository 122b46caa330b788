#include "cli/progress.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

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

/* "4 min" */
static void put_time(double seconds, char text[24])
{
    if (seconds < 120)
        snprintf(text, 24, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(text, 24, "%.0f min", seconds / 60);
    else
        snprintf(text, 24, "%.1f h", seconds / 3600);
}

/* ", 4 min left" at the rate so far; where it is not known how much is left, what has passed. */
static const char *say_time(const struct progress *progress, double done_frac, char text[40])
{
    const double elapsed_s = wall_s() - progress->start_s;
    char time[24];
    text[0] = '\0';
    if (isnan(done_frac)) {
        put_time(elapsed_s, time);
        snprintf(text, 40, ", %s so far", time);
    } else if (done_frac > 0) {
        put_time(elapsed_s * (1 - done_frac) / done_frac, time);
        snprintf(text, 40, ", %s left", time);
    }
    return text;
}

static const char *put_bar(double done_frac, char text[BAR_WIDTH + 16])
{
    const int filled = isnan(done_frac) ? 0 : (int)(done_frac * BAR_WIDTH);
    char bar[BAR_WIDTH + 1] = {0};
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    text[0] = '\0';
    if (!isnan(done_frac))
        snprintf(text, BAR_WIDTH + 16, "[%s] %3.0f%%  ", bar, 100 * done_frac);
    return text;
}

static void draw(const struct progress *progress)
{
    struct progress_state state = {.done_frac = 0};
    char bar[BAR_WIDTH + 16], left[40], line[256];
    progress->look(progress->context, &state);
    snprintf(line, sizeof line, "%s%s%s", put_bar(state.done_frac, bar), state.text,
             say_time(progress, state.done_frac, left));
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
    if (progress->terminal && !progress->quiet)
        draw(progress); /* at once: what is over sooner than a tick was seen to begin */
    progress->running = !progress->quiet && (progress->terminal || progress->in_lines) &&
                        pthread_create(&progress->thread, NULL, keep_drawing, progress) == 0;
}

void progress_stop(struct progress *progress)
{
    if (!progress->running)
        return;
    atomic_store(&progress->stopping, true);
    pthread_join(progress->thread, NULL);
}
