/* Whether a point was flown above capacity: see saturation.c for the rule. */
#ifndef INFLIGHT_REPORTS_SATURATION_H
#define INFLIGHT_REPORTS_SATURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "life.h"

/* Of lives[order[i]], i below n, in order of arrival. */
bool saturation_found(const struct life *lives, const uint32_t *order, size_t n);

#endif
