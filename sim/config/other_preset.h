/* The first point of a study, read with another preset than the one that its file names. */
#ifndef SIM_CONFIG_OTHER_PRESET_H
#define SIM_CONFIG_OTHER_PRESET_H

#include "config/config.h"

/* Reads the first point with the scheduler of the preset. From the file's `serving` it keeps the
 * length limit, `kv`, and the limits of a batch, if the preset has keys for them. Returns
 * IFL_E_INPUT if it has none. On success the caller must call config_finish. */
int study_read_other_preset(const struct study *study, const char *preset, struct config *config,
                            struct ifl_error *error);

#endif
