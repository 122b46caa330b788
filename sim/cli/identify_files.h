/* The printed report of `inflight identify`, and its files. */
#ifndef SIM_CLI_IDENTIFY_FILES_H
#define SIM_CLI_IDENTIFY_FILES_H

#include "identify/identify.h"

struct identify_report {
    const struct identify_options *options;
    struct identified *found;          /* notices are added */
    const struct recording *predicted; /* [n_predicted] */
    size_t n_predicted;
    const char *config_path;
    FILE *table;
};

/* The parameters, the errors before and after, the predictions and the notices. */
int identify_print(const struct identify_report *report, struct ifl_error *error);
/* The deployment as a map that other configurations name. */
int identify_write_overlay(const struct identify_report *report, const char *path,
                           struct ifl_error *error);

#endif
