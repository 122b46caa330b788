/* The first point of a study, read with another preset than the one that its file names. */
#ifndef SIM_CONFIG_OTHER_PRESET_H
#define SIM_CONFIG_OTHER_PRESET_H

#include "config/config.h"

/* The scheduler is the preset's: of the file's `serving` the length limit, `kv`, and the limits of
 * a batch stay, as far as the preset has a place for them. IFL_E_INPUT: it has none. On success the
 * caller owes config_finish. */
int study_read_other_preset(const struct study *study, const char *preset, struct config *config,
                            struct ifl_error *error);

#endif
