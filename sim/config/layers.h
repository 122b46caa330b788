/* The layers that make a point: presets below, the file with its edits, the sweep's values on top.
 *
 * Upper layers override key by key. Only a policy module is different: its parameters mean nothing
 * to another module, so a layer that names another policy clears those below it. A layer may give
 * only some elements of a list of modules, as a map from their numbers. */
#ifndef SIM_CONFIG_LAYERS_H
#define SIM_CONFIG_LAYERS_H

#include "base/tree.h"

/* Overrides `under` with `over`; both are whole configurations. */
int layer_lay(struct node *under, const struct node *over, struct ifl_error *error);

/* Makes a configuration with one key. */
int layer_of(const char *dotted, const struct node *value, struct node **layer,
             struct ifl_error *error);

/* Replaces words by the maps that they stand for: `workload.filter: sharegpt`, `deployment: NAME`
 * and the names of modules. */
int layer_expand(struct node *root, struct ifl_error *error);

/* Loads the preset of that name or path as a configuration, merged over the presets that it
 * extends. `kind` is "serving", "routing" or "links". */
int preset_load(const char *kind, const char *name, struct node **root, struct ifl_error *error);

struct study;
/* Merges the layers of a point into one tree, which the caller frees: presets, the file, its edits
 * and the sweep, without defaults; of pools, that of the first one. *root is NULL after an error.
 */
int study_layers(const struct study *study, size_t point, struct node **root,
                 struct ifl_error *error);

/* The preset's `about` section, as a tree that the caller frees; NULL if it has none. */
int preset_about(const char *kind, const char *name, struct node **about, struct ifl_error *error);

#endif
