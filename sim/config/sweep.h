/* A sweep: a map of dotted keys to lists of values; a point for every combination. */
#ifndef SIM_CONFIG_SWEEP_H
#define SIM_CONFIG_SWEEP_H

#include "config/tree.h"

enum { MAX_POINTS = 10000 };

/* Known keys, lists of scalars, not too many points. `sweep` may be NULL: one point. */
int sweep_check(const struct node *sweep, size_t *n_points, struct ifl_error *error);

/* The value of an axis at a point. The first axis varies slowest. */
const struct node *sweep_value(const struct node *sweep, size_t point, size_t axis);

/* Lays the point's values over a configuration. */
int sweep_lay(const struct node *sweep, size_t point, struct node *root, struct ifl_error *error);

/* Does the sweep decide this key? */
bool sweep_decides(const struct node *sweep, const char *dotted);
/* Does it change the preset, or who decides, so that no one list of serving keys fits all points?
 */
bool sweep_changes_policies(const struct node *sweep);

/* ---- edits of the command line: "path.to.key=value" ---- */

/* Applies one to the configuration, and takes its key out of the sweep. "sweep" and
 * "sweep.path.to.key" edit the sweep itself. */
int edit_apply(const char *edit, struct node *root, struct node **sweep, struct ifl_error *error);

#endif
