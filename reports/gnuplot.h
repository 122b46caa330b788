/* gnuplot as a child process. */
#ifndef INFLIGHT_REPORTS_GNUPLOT_H
#define INFLIGHT_REPORTS_GNUPLOT_H

#include "inflight/error.h"

/* Runs script_dir/script on data and figures in out_dir. What gnuplot says of an error is the
 * message; a missing gnuplot names the package to install. */
int gnuplot_run(const char *script_dir, const char *script, const char *out_dir,
                struct ifl_error *error);

#endif
