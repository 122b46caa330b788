/* One figure: drawn by gnuplot, then marked with its title and source. */
#include <stdio.h>

#include "inflight/report.h"
#include "plot/gnuplot.h"
#include "plot/imprint.h"

/* gnuplot does not report a full disk: its files may be incomplete. */
static void remove_files(const char *out_dir, const char *figure, const char *stage)
{
    static const char *const extensions[] = {"pdf", "svg", "png"};
    char path[IFL_PATH_BYTES];
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        snprintf(path, sizeof path, "%s/%s%s.%s", out_dir, figure, stage, extensions[i]);
        remove(path);
    }
}

int ifl_figure(const struct ifl_drawing *drawing, const char *script, const char *figure,
               struct ifl_error *error)
{
    int code = gnuplot_run(drawing, script, figure, error);
    if (!code)
        code = imprint_all(drawing->out_dir, figure, drawing->source ? drawing->source : "", error);
    remove_files(drawing->out_dir, figure, ".tmp");
    if (code)
        remove_files(drawing->out_dir, figure, "");
    return code;
}
