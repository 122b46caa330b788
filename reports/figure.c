#include "gnuplot.h"
#include "inflight/report.h"

int ifl_figure(const char *figure, const char *out_dir, const char *script_dir,
               struct ifl_error *error)
{
    char script[96];
    snprintf(script, sizeof script, "%s.gp", figure);
    return gnuplot_run(script_dir, script, out_dir, error);
}
