/* Samples in Prometheus' text format, as servers answer at /metrics.
 * https://prometheus.io/docs/instrumenting/exposition_formats (version 0.0.4) */
#ifndef SIM_BASE_PROMETHEUS_H
#define SIM_BASE_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>

struct sample { /* borrowed from the text, not NUL-ended */
    const char *name, *labels, *value;
    size_t n_name, n_labels, n_value; /* labels without their braces */
};

/* Reads the next sample at or after *at and advances *at; returns false at the end. Comments and
 * lines that are no sample are skipped. */
bool sample_next(const char **at, const char *end, struct sample *sample);
/* True if the sample has the name. */
bool sample_is(const struct sample *sample, const char *name);
struct sample_label {
    char name[64], value[256]; /* without quotes and escapes; cut where they are longer */
};
/* Reads the next label and advances *at, which must be NULL at first; returns false after the last
 * label. */
bool sample_label_next(const struct sample *sample, const char **at, struct sample_label *label);

#endif
