/* A sweep: a map of dotted keys to lists of values, or to values with names (variants.h), with one
 * point for every combination. */
#ifndef SIM_CONFIG_SWEEP_H
#define SIM_CONFIG_SWEEP_H

#include "base/tree.h"

enum { MAX_POINTS = 10000 };

/* Checks that the keys are known, that their values are lists of scalars or named values, and that
 * the points are not too many. variants_prepare comes first. `sweep` may be NULL: one point. */
int sweep_check(const struct node *sweep, size_t *n_points, struct ifl_error *error);

/* The value of an axis at a point. The first axis varies slowest. */
const struct node *sweep_value(const struct node *sweep, size_t point, size_t axis);

/* As sweep_value, as text: the value's name if it has one. */
const char *sweep_name(const struct node *sweep, size_t point, size_t axis);
/* Returns the name of the axis in reports: its key, or "variant" for variants. */
const char *sweep_axis_name(const struct node *axis);

/* Overrides a configuration with the point's values. */
int sweep_lay(const struct node *sweep, size_t point, struct node *root, struct ifl_error *error);

/* True if an axis without maps sets this key, at every point. */
bool sweep_decides(const struct node *sweep, const char *dotted);
/* True if the sweep, or what its maps set (variants_touched), changes the preset or the policy of a
 * serving module. Then no single list of serving keys fits all points. */
bool sweep_changes_policies(const struct node *sweep, const struct node *touched);

/* ---- edits of the command line: "path.to.key=value" ---- */

/* Applies an edit to the configuration and removes its key from the sweep. "sweep" and
 * "sweep.path.to.key" edit the sweep itself. */
int edit_apply(const char *edit, struct node *root, struct node **sweep, struct ifl_error *error);

#endif
