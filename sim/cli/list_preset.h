/* The part of `inflight list preset NAME` that is not in the preset's own file. */
#ifndef SIM_CLI_LIST_PRESET_H
#define SIM_CLI_LIST_PRESET_H

#include "inflight/error.h"

struct node;

/* Prints, as a second YAML document, the preset merged over the presets that it extends, and, as
 * comments, the keys of `serving` that it leaves at their defaults. `own`: the preset's file. */
int list_preset_rest(const char *name, const struct node *own, struct ifl_error *error);

#endif
