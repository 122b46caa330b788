#include "inflight/report.h"
#include "plot/gnuplot.h"
#include "plot/imprint.h"

int ifl_figure(const struct ifl_drawing *drawing, const char *script, const char *figure,
               struct ifl_error *error)
{
    const int code = gnuplot_run(drawing, script, figure, error);
    return code || !drawing->source ? code
                                    : imprint_all(drawing->out_dir, figure, drawing->source, error);
}
