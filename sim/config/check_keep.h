/* Features that cannot be combined with serving.kv.keep. */
#ifndef SIM_CONFIG_CHECK_KEEP_H
#define SIM_CONFIG_CHECK_KEEP_H

#include "config/config.h"

struct keep_refusal {
    const char *key;  /* the key that is wrong; NULL: none is */
    const char *text; /* its value, and what was expected */
};

struct keep_refusal keep_refused(const struct config *config);

#endif
