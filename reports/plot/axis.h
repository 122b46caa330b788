/* Which swept key is the axis of the figures. */
#ifndef INFLIGHT_REPORTS_PLOT_AXIS_H
#define INFLIGHT_REPORTS_PLOT_AXIS_H

#include "plot/series.h"

/* Finds the key of the axis in every run, and the rates that result from a factor on a trace's
 * rate. There is no axis if options.x is not given and some run sweeps neither. */
int series_find_axis(struct series_set *set, struct ifl_error *error);

#endif
