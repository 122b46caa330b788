/* gnuplot as a child process. */
#ifndef INFLIGHT_REPORTS_GNUPLOT_H
#define INFLIGHT_REPORTS_GNUPLOT_H

#include "inflight/report.h"

/* Runs script_dir/SCRIPT.gp on out_dir/FIGURE.csv. Its arguments are those that style.gp names. The
 * message of an error is that of gnuplot; if gnuplot is missing, the error names the package to
 * install. */
int gnuplot_run(const struct ifl_drawing *drawing, const char *script, const char *figure,
                struct ifl_error *error);

#endif
