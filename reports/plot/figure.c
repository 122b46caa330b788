/* One figure: drawn by gnuplot, then marked with what it was made from. */
#include <stdio.h>

#include "inflight/report.h"
#include "plot/gnuplot.h"
#include "plot/imprint.h"

/* gnuplot does not say when a disk is full: what it has drawn may be half of it. */
static void remove_drawn(const char *out_dir, const char *figure)
{
    static const char *const extensions[] = {"pdf", "svg", "png"};
    char path[IFL_PATH_BYTES];
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        snprintf(path, sizeof path, "%s/%s.%s", out_dir, figure, extensions[i]);
        remove(path);
    }
}

int ifl_figure(const struct ifl_drawing *drawing, const char *script, const char *figure,
               struct ifl_error *error)
{
    int code = gnuplot_run(drawing, script, figure, error);
    if (code || !drawing->source)
        return code;
    code = imprint_all(drawing->out_dir, figure, drawing->source, error);
    if (code)
        remove_drawn(drawing->out_dir, figure);
    return code;
}
