/* The parametric form of each operation: its parameters, where a profile keeps them, and the
 * prediction of a sample by the cost model's own functions. */
#ifndef SIM_FIT_FORMS_H
#define SIM_FIT_FORMS_H

#include <stdbool.h>

#include "cost/hardware.h"
#include "fit/sample.h"

enum { FORM_MAX_PARAMETERS = 12 };

/* A parameter of a form.
 *   - A logistic transformation keeps it within its bounds; with `log`, a transformation of its
 *     logarithm.
 *   - It is determined if its standard error is below half of it, or below `negligible`. */
struct form_parameter {
    const char *name;
    size_t offset; /* offset of a double in struct platform */
    double low, high, start;
    bool log;
    double negligible;
    /* True if the parameter affects the row's time. The parameter is fitted only if it affects some
     * rows and not others, and keeps its value otherwise. NULL: it is always fitted */
    bool (*shows)(const struct fit_sample *sample);
    bool of_some_kernels; /* a value of 0 is kept: it means that the kernel has no such term */
    const char *us_name;  /* the name in older profiles, in microseconds; NULL: there is none */
};

struct form {
    enum fit_op op;
    const char *section; /* section of the profile */
    struct form_parameter parameters[FORM_MAX_PARAMETERS];
    int n_parameters;
    int n_folds;          /* folds of groups, each of which is held out once */
    size_t switch_offset; /* offset of bulk_from_bytes in struct platform; 0: there is no second
                             line */
    double (*predict_s)(const struct platform *platform, const struct fit_sample *sample);
};

const struct form *form_of(enum fit_op op); /* NULL for FIT_NONE */

static inline double *form_parameter_at(struct platform *platform, const struct form_parameter *of)
{
    return (double *)((char *)platform + of->offset);
}

#endif
