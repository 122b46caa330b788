/* Rows of the tables of recipe.h, and reasons that several of them share. */
#ifndef SIM_IMPORT_RECIPE_KEYS_H
#define SIM_IMPORT_RECIPE_KEYS_H

#include "import/recipe.h"

#define HARMLESS(name)                                                                             \
    {                                                                                              \
        name, NULL, FOUND_HARMLESS, NULL                                                           \
    }
#define READ(name)                                                                                 \
    {                                                                                              \
        name, NULL, RECIPE_READ, NULL                                                              \
    }
#define FLAG(name, flag)                                                                           \
    {                                                                                              \
        name, flag, 0, NULL                                                                        \
    }
#define UNMODELLED(name, says)                                                                     \
    {                                                                                              \
        name, NULL, FOUND_UNMODELLED, says                                                         \
    }
#define ELSEWHERE(name, says)                                                                      \
    {                                                                                              \
        name, NULL, FOUND_UNKNOWN, says                                                            \
    }
#define GPUS(name)                                                                                 \
    {                                                                                              \
        name, NULL, FOUND_HARMLESS, USED_GPUS                                                      \
    }

#define USED_GPUS "how many of them the server uses is what its flags say"
#define OF_ROUTER "what deals requests out to servers: see cluster.router"
#define OF_SCALER "a number of servers that changes while they run"
#define OF_TIER "K/V on a disk or another machine"
#define OF_ADAPTERS "which adapters there are: the trace's column `adapter`"

#endif
