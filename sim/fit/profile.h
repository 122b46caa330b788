/* A fitted profile as a file: values with their uncertainty, how well they fit, and what is only
 * assumed. */
#ifndef SIM_FIT_PROFILE_H
#define SIM_FIT_PROFILE_H

#include "fit/fit.h"

struct profile_texts {
    /* NULL: as in the profile that the fit began from; `assumed`: what the data does not cover */
    const char *about, *source, *assumed;
};

/* Sets the texts of `hardware`: what the data does not cover is assumed as in `like`, or, where
 * that is NULL, only what no sheet of inflight calibrate covers. */
void profile_describe(struct hardware *hardware, const struct hardware *like,
                      const struct profile_texts *texts, const struct fit_report *report);

int profile_write(const struct hardware *hardware, const struct fit_report *report,
                  const char *path, struct ifl_error *error);

/* measured_vs_fitted.csv: of each operation at most a thousand rows, evenly picked. */
int profile_write_points(const struct fit_report *report, const char *path,
                         struct ifl_error *error);

#endif
