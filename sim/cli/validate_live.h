/* `inflight validate --live`: a configuration's workload sent to a server and simulated. */
#ifndef SIM_CLI_VALIDATE_LIVE_H
#define SIM_CLI_VALIDATE_LIVE_H

#include "cli/live_options.h"

struct validate_live {
    const char *url, *config; /* of the server; a file or a name of one */
    const char *const *sets;  /* [n_sets] "KEY=VALUE" */
    size_t n_sets;
    const char *out_dir;
    const struct live_options *live;
};

/* Writes out_dir/live, as `replay` does, and out_dir/simulated, as `run` does, and prints the
 * first. The runs are yet to be compared. Returns the exit code; after another than 0 a line is on
 * standard error. */
int validate_live(const struct validate_live *request);
/* Writes out_dir/report.html, one page of both runs, and of what comparing them has left in
 * out_dir/simulated. Returns the exit code in the same way. */
int validate_live_page(const struct validate_live *request);

#endif
