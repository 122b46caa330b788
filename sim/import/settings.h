/* Keys of a manifest around the command of a server: its variables, and scripts. */
#ifndef SIM_IMPORT_SETTINGS_H
#define SIM_IMPORT_SETTINGS_H

#include "base/tree.h"
#include "import/expand.h"

/* The value of a key, or that of a map that is merged into this one under "<<". */
const struct node *settings_member(const struct node *map, const char *key);

/* Visits the values of a map and of those that are merged into it, but for values that are
 * replaced, until a visit returns an error. */
typedef int settings_visit(void *of, const struct node *value);
int settings_each(const struct node *map, settings_visit *visit, void *of, struct ifl_error *error);

/* The text with values in their places: of a pod's variables `of_pod`, as Kubernetes does; if that
 * is NULL of those of `e`, whose `out` is not used. NULL: no memory; the caller owns it. */
char *settings_value(const char *text, const struct expansion *e, const struct variables *of_pod);

/* Reads the variables of environment, env and envs. In their values, those of `given` are replaced,
 * or in a pod those before them. SkyPilot's SKYPILOT_NUM_GPUS_PER_NODE and the like follow from its
 * resources. */
int settings_read(const struct node *map, struct variables *given, bool is_pod,
                  struct variables *own, struct ifl_error *error);
/* Writes NAME='value' for each variable, and the names of those whose value is elsewhere. */
void settings_put(const struct node *map, const struct variables *own, FILE *out);

/* A script and no command: `run` of SkyPilot, after its `setup`, or the `commands` of dstack. */
bool settings_has_script(const struct node *map);
/* The script behind its variables, one a line; the caller owns it. */
int settings_script(const struct node *map, const struct variables *own, char **script,
                    struct ifl_error *error);

#endif
