/* Values of a sweep that are more than a word: maps, and variants, which are whole configurations.
 *
 *     sweep:
 *       serving.kv.num_blocks: [1000, 4000]                       words
 *       parallel: [{tensor: 2}, {pipeline: 2}]                    maps
 *       slo.ttft_s: {strict: 0.5, loose: 5}                       values with names
 *       variants: {base: {}, paged: {serving: {preset: vllm-v0}}} configurations with names
 *
 * In reports a point has the name of such a value. The name of a map in a list is made of its keys
 * and values: "tensor 2". */
#ifndef SIM_CONFIG_VARIANTS_H
#define SIM_CONFIG_VARIANTS_H

#include "base/tree.h"

/* True for an axis of configurations. */
bool axis_is_variants(const struct node *axis);

/* True if some value of the axis is a map, so that its values may set different keys. */
bool axis_holds_maps(const struct node *axis);

/* Brings a sweep, read or edited, into one form: a list that holds a map becomes a map from names
 * to values, and short forms in variants become the maps that they stand for. A second call changes
 * nothing. A sweep or an axis of the wrong kind is left for sweep_check to refuse. */
int variants_prepare(struct node *sweep, struct ifl_error *error);

/* A value of an axis as a configuration, which the caller frees. */
int variants_layer(const struct node *axis, const struct node *value, struct node **layer,
                   struct ifl_error *error);

/* Checks one axis with names: each is a line of text, each value is one that its key can have, and
 * a variant sets keys of a point. */
int variants_check(const struct node *axis, struct ifl_error *error);

/* Merges all keys that axes with maps set into one configuration, which the caller frees; NULL if
 * there is none. Other values of the same axis may leave such keys to lower layers. A key that a
 * variant sets and another axis sweeps is an error. */
int variants_touched(const struct node *sweep, struct node **touched, struct ifl_error *error);

/* Applies an edit of the command line to each variant that has keys of the same map, so that the
 * edit overrides the variant, too. */
int variants_edit(struct node *sweep, const char *dotted, const struct node *value,
                  struct ifl_error *error);
/* Sets the value at NAME or NAME.path.to.key; a null removes it. */
int variants_set(struct node *variants, const char *path, const struct node *value,
                 struct ifl_error *error);

#endif
