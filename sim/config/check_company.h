/* Keys that have no effect without another key, such as workload.patience.mean_s without
 * workload.patience.process.
 *
 * Such a key is refused if the user's file or command line gives it a value other than its default
 * and no point of the study has the other key; a sweep may give the other key in some points alone.
 * The other key counts as present with any value but null, even one that turns its feature off. So
 * the files that a run writes, which have all keys, are accepted, and so is a file after an edit on
 * the command line. Keys in presets are never refused: they are defaults for features that a file
 * may turn on. */
#ifndef SIM_CONFIG_CHECK_COMPANY_H
#define SIM_CONFIG_CHECK_COMPANY_H

#include "config/config.h"

/* Returns a bit set of the rules with a key in the user's layer, for all pools or for one pool. */
uint64_t company_said(const struct node *upper);

/* Returns a bit set of the rules with their other key present. root: the layer alone, or merged
 * over its presets. */
uint64_t company_there(const struct node *root);

/* Refuses the first key of these rules that the layer has. Returns 0 if it has none. */
int company_refuse(const struct node *upper, uint64_t rules, struct ifl_error *error);

#endif
