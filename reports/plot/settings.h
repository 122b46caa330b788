/* Variables of style.gp that the options of a plot set. */
#ifndef INFLIGHT_REPORTS_PLOT_SETTINGS_H
#define INFLIGHT_REPORTS_PLOT_SETTINGS_H

#include "plot/figures.h"

/* True if the options have a scale or a range. */
bool settings_of_axes(const struct ifl_plot_options *options);
/* Makes *settings, which the caller frees: gnuplot commands, or NULL where the figure is as it is
 * without options. `of_axes`: with scales and ranges. */
int settings_make(const struct plot *plot, bool of_axes, char **settings, struct ifl_error *error);

#endif
