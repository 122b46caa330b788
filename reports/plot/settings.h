/* Variables of style.gp that the options of a plot set. */
#ifndef INFLIGHT_REPORTS_PLOT_SETTINGS_H
#define INFLIGHT_REPORTS_PLOT_SETTINGS_H

#include "plot/figures.h"

/* True if the options have a scale or a range. */
bool settings_of_axes(const struct ifl_plot_options *options);
/* Makes *settings, gnuplot commands that the caller frees; NULL if the options change nothing.
 * of_axes: include scales and ranges. */
int settings_make(const struct plot *plot, bool of_axes, char **settings, struct ifl_error *error);

#endif
