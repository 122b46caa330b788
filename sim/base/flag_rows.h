/* Rows of the tables of server_flags.h, and reasons that several servers share. */
#ifndef SIM_BASE_FLAG_ROWS_H
#define SIM_BASE_FLAG_ROWS_H

#include "base/server_flags.h"

#define MAPS(name, aliases, takes, key, value)                                                     \
    {                                                                                              \
        name, aliases, TAKES_##takes, FLAG_MAPS, key, value, NULL, NULL                            \
    }
/* The key can express some of the flag's values, with | between two; other values are not modelled.
 */
#define MAPS_SOME(name, aliases, key, values, what)                                                \
    {                                                                                              \
        name, aliases, TAKES_VALUE, FLAG_MAPS, key, "", values, what                               \
    }
/* The key can be set if other settings allow it. */
#define DEPENDS(name, aliases, takes, key)                                                         \
    {                                                                                              \
        name, aliases, TAKES_##takes, FLAG_DEPENDS, key, "", NULL, NULL                            \
    }
#define HARMLESS(name, takes)                                                                      \
    {                                                                                              \
        name, NULL, TAKES_##takes, FLAG_HARMLESS, NULL, "", NULL, NULL                             \
    }
#define UNMODELLED(name, aliases, takes, neutral, what)                                            \
    {                                                                                              \
        name, aliases, TAKES_##takes, FLAG_UNMODELLED, NULL, "", neutral, what                     \
    }

#define EXPERTS "expert parallelism beyond parallel.expert and deployment.exchange"
#define KERNELS "kernels: those of the hardware profile count"
#define GRAPHS "CUDA graphs and compilation: those of the hardware profile count"
#define POOLING "models that answer without decoding"
#define HYBRID "models with several kinds of K/V layers"

#endif
