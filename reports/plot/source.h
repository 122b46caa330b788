/* Where figures come from: the version and the configuration of each run. */
#ifndef INFLIGHT_REPORTS_PLOT_SOURCE_H
#define INFLIGHT_REPORTS_PLOT_SOURCE_H

#include <stddef.h>

#include "inflight/error.h"

/* "RUN: inflight 0.1.0, config.yaml fnv1a-64 0123456789abcdef; ...", the caller's to free: the
 * first line of each run's config.yaml, which names the version, and the hash of its bytes. A run
 * without one says so. */
int source_of_runs(char **source, size_t n_runs, const char *const *run_dirs,
                   struct ifl_error *error);

#endif
