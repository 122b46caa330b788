/* One figure: drawn by gnuplot, then marked with its title and source. */
#include <stdio.h>

#include "inflight/report.h"
#include "plot/gnuplot.h"
#include "plot/imprint.h"

/* gnuplot does not report a full disk: its files may be incomplete. */
static void remove_files(const char *out_dir, const char *figure, const char *const *ends, size_t n)
{
    char path[IFL_PATH_BYTES];
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s%s", out_dir, figure, ends[i]);
        remove(path);
    }
}

int ifl_figure(const struct ifl_drawing *drawing, const char *script, const char *figure,
               struct ifl_error *error)
{
    static const char *const drawn[] = {".tmp.pdf", ".tmp.svg", ".tmp.png", "-tex.tmp.pdf",
                                        "-tex.tmp.tex"};
    static const char *const marked[] = {".pdf", ".svg", ".png", "-tex.pdf", ".tex"};
    const size_t n = sizeof drawn / sizeof *drawn;
    const char *source = drawing->source ? drawing->source : "";
    int code = gnuplot_run(drawing, script, figure, error);
    if (!code)
        code = imprint_all(drawing->out_dir, figure, source, error);
    if (!code && drawing->latex)
        code = imprint_latex(drawing->out_dir, figure, source, error);
    remove_files(drawing->out_dir, figure, drawn, n);
    if (code)
        remove_files(drawing->out_dir, figure, marked, n);
    return code;
}
