/* A cache of models and hardware profiles for the points of a study: a sweep parses each file once
 * per process. Callers get copies. Any number of threads may use a shelf. A shelf keeps the
 * SHELF_PROFILES entries used last. */
#ifndef SIM_RUN_PROFILE_SHELF_H
#define SIM_RUN_PROFILE_SHELF_H

#include <pthread.h>

#include "cost/hardware.h"
#include "cost/model.h"

enum { SHELF_PROFILES = 32 };

struct shelved_profile;

struct profile_shelf {
    pthread_mutex_t lock;
    struct shelved_profile *first; /* the entry used last */
};

void profile_shelf_init(struct profile_shelf *shelf);
void profile_shelf_finish(struct profile_shelf *shelf);

/* As model_load and hardware_load. */
int profile_shelf_model(struct profile_shelf *shelf, const char *name, struct model *model,
                        struct ifl_error *error);
int profile_shelf_hardware(struct profile_shelf *shelf, const char *name, struct platform *platform,
                           struct ifl_error *error);

#endif
