/* A run's files in a temporary folder, and figures drawn from them. */
#ifndef TESTS_REPORTS_DRAWING_H
#define TESTS_REPORTS_DRAWING_H

#include "scratch.h"

#include "inflight/report.h"

static struct ifl_error error;

static inline struct scratch run_of(const char *summary, const char *distributions)
{
    const struct scratch scratch = scratch_make();
    scratch_write(&scratch, "summary.csv", summary);
    if (distributions)
        scratch_write(&scratch, "quantiles.csv", distributions);
    return scratch;
}

static inline void remember(void *context, const char *text)
{
    strncat(context, text, 4000);
    strcat(context, "\n");
}

static inline int plot_named(const struct scratch *scratch, const char *figure, char *notes)
{
    const char *const dirs[] = {scratch->dir};
    const struct ifl_plot_options options = {
        .n_runs = 1,
        .run_dirs = dirs,
        .drawing = {.out_dir = scratch->dir, .script_dir = getenv("INFLIGHT_SCRIPTS")},
        .n_figures = figure != NULL,
        .figures = &figure,
        .say = notes ? remember : NULL,
        .context = notes,
    };
    return ifl_plot(&options, &error);
}

static inline bool have_gnuplot(void)
{
    return access("/usr/bin/gnuplot", X_OK) == 0;
}

#endif
