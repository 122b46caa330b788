/* The layers that make a point: presets below, the file with its edits, the sweep's values on top.
 *
 * Upper layers override key by key. Only a policy module is different: its parameters mean nothing
 * to another module, so a layer that names another policy clears those below it. Of a list of
 * modules a layer may say some elements alone, in a map of their numbers. */
#ifndef SIM_CONFIG_LAYERS_H
#define SIM_CONFIG_LAYERS_H

#include "base/tree.h"

/* Lays `over` on `under`, both whole configurations. */
int layer_lay(struct node *under, const struct node *over, struct ifl_error *error);

/* A configuration of one key. */
int layer_of(const char *dotted, const struct node *value, struct node **layer,
             struct ifl_error *error);

/* Words become the maps that they stand for: `workload.filter: sharegpt`, `deployment: NAME` and
 * the names of modules. */
int layer_expand(struct node *root, struct ifl_error *error);

/* The preset of that name or path as a configuration, laid over the presets that it extends. `kind`
 * is "serving", "routing" or "links". */
int preset_load(const char *kind, const char *name, struct node **root, struct ifl_error *error);

struct study;
/* The layers of a point as one tree, which the caller frees: what the presets, the file, its edits
 * and the sweep say, without the defaults; of pools the first one's. NULL after an error. */
int study_layers(const struct study *study, size_t point, struct node **root,
                 struct ifl_error *error);

/* The preset's `about` section, as a tree that the caller frees; NULL if it has none. */
int preset_about(const char *kind, const char *name, struct node **about, struct ifl_error *error);

#endif
