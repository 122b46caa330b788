/* `inflight validate --live`: a configuration's workload sent to a server and simulated. */
#ifndef SIM_CLI_VALIDATE_LIVE_H
#define SIM_CLI_VALIDATE_LIVE_H

#include "cli/live_options.h"

struct validate_live {
    const char *url, *config; /* url of the server; config: a file or the name of one */
    const char *const *sets;  /* [n_sets] "KEY=VALUE" */
    size_t n_sets;
    const char *out_dir;
    const struct live_options *live;
};

/* Writes out_dir/live, as `replay` does, and out_dir/simulated, as `run` does, and prints the
 * former. Does not compare the two runs. Returns the exit code; if it is not 0, a line has been
 * printed on standard error. */
int validate_live(const struct validate_live *request);
/* Writes out_dir/report.html, one page about both runs and the results of comparing them in
 * out_dir/simulated. Returns the exit code, as validate_live does. */
int validate_live_page(const struct validate_live *request);

#endif
