/* Lives that are numbered by arrival, and wait for those with lower numbers (lives.h). */
#ifndef INFLIGHT_REPORTS_EARLY_LIVES_H
#define INFLIGHT_REPORTS_EARLY_LIVES_H

#include "record/lives.h"

#define EARLY_NOMEM SIZE_MAX

int early_open(struct early_lives *early, struct ifl_error *error);
void early_close(struct early_lives *early);
/* Returns the place of the life with that number; EARLY_NOMEM: memory is short. */
size_t early_place(struct early_lives *early, uint64_t serial, struct ifl_error *error);
/* As lives_next. ended: no life will be added any more. */
int early_next(struct early_lives *early, bool ended, const struct life **life,
               struct ifl_error *error);

#endif
