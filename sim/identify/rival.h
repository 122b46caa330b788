/* Other models of the runs, fitted to them as the configuration is. */
#ifndef SIM_IDENTIFY_RIVAL_H
#define SIM_IDENTIFY_RIVAL_H

#include "identify/quest.h"

/* Where the configuration has a prefix cache and the requests share prompts: a server without it.
 * Fills found->rival if that explains the runs better. */
int rival_without_cache(struct quest *quest, struct ifl_error *error);

#endif
