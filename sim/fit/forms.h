/* The parametric form of each operation: its parameters, where a profile keeps them, and the
 * prediction of a sample by the cost model's own functions. */
#ifndef SIM_FIT_FORMS_H
#define SIM_FIT_FORMS_H

#include <stdbool.h>

#include "cost/hardware.h"
#include "fit/sample.h"

enum { FORM_MAX_PARAMETERS = 12 };

/* A parameter stays within its bounds by a logistic transformation, of its logarithm where `log`.
 * It is determined if its standard error is below half of it, or below `negligible`. */
struct form_parameter {
    const char *name;
    size_t offset; /* of a double in struct hardware */
    double low, high, start;
    bool log;
    double negligible;
    /* NULL, or whether a row shows it: it keeps the value it has if all rows do, or none */
    bool (*shows)(const struct fit_sample *sample);
    bool of_some_kernels; /* keeps a value of 0, which says that the kernel is another */
};

struct form {
    enum fit_op op;
    const char *section; /* of the profile */
    struct form_parameter parameters[FORM_MAX_PARAMETERS];
    int n_parameters;
    int n_folds;          /* into which groups are dealt when each is held out once */
    size_t switch_offset; /* of the size in bytes at which the second line begins, or 0 */
    double (*predict_s)(const struct hardware *hardware, const struct fit_sample *sample);
};

const struct form *form_of(enum fit_op op); /* NULL for FIT_NONE */

static inline double *form_parameter_at(struct hardware *hardware, const struct form_parameter *of)
{
    return (double *)((char *)hardware + of->offset);
}

#endif
