/* Whether the arrival rate of a point was above capacity; saturation.c has the rule. */
#ifndef INFLIGHT_REPORTS_SATURATION_H
#define INFLIGHT_REPORTS_SATURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/life.h"

/* Judges lives[order[i]], 0 <= i < n, in order of arrival. */
bool saturation_found(const struct life *lives, const uint32_t *order, size_t n);

#endif
