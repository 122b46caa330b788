/* A fitted profile as a file: values with their uncertainty, the errors of the fit, and which
 * values are assumed. */
#ifndef SIM_FIT_PROFILE_H
#define SIM_FIT_PROFILE_H

#include "fit/fit.h"

struct profile_texts {
    /* NULL: as in the profile from which the fit began; `assumed`: the parts that the data does not
     * cover */
    const char *about, *source, *assumed;
};

/* Sets the texts of the profile. The assumed sections are those that the data does not cover, with
 * the values of `like`. If `like` is NULL, they are those that no sheet of inflight calibrate
 * covers.
 */
void profile_describe(struct platform *platform, const struct platform *like,
                      const struct profile_texts *texts, const struct fit_report *report);

int profile_write(const struct platform *platform, const struct fit_report *report,
                  const char *path, struct ifl_error *error);

/* Writes measured_vs_fitted.csv with at most a thousand rows per operation, evenly chosen. */
int profile_write_points(const struct fit_report *report, const char *path,
                         struct ifl_error *error);

#endif
