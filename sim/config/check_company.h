/* Keys that have no effect without another one.
 *
 * A key is refused that the user says, not at its default, where no point of the study has the
 * other one: a sweep may turn it on. Where that one says itself that it is off, it counts as there:
 * so does what a run writes of itself, and what is left of a file under an edit. What presets say
 * is never refused: they give defaults to what a file may turn on. */
#ifndef SIM_CONFIG_CHECK_COMPANY_H
#define SIM_CONFIG_CHECK_COMPANY_H

#include "config/config.h"

/* The rules, a bit each, with a key in the user's layer, for all pools or for one. */
uint64_t company_said(const struct node *upper);

/* Those with their other key in place. root: the layer, or the layer on its presets. */
uint64_t company_there(const struct node *root);

/* Refuses the first key of these rules that the layer says; 0 if it says none. */
int company_refuse(const struct node *upper, uint64_t rules, struct ifl_error *error);

#endif
