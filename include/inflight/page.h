/* A page of runs: one HTML file that shows their reports in a browser, without a network. */
#ifndef INFLIGHT_PAGE_H
#define INFLIGHT_PAGE_H

#include <stddef.h>

#include "inflight/error.h"

struct ifl_page_options {
    size_t n_runs;               /* 1 or more */
    const char *const *run_dirs; /* each with a summary.csv or, of a search for the capacity, a
                                  * capacity.csv; their other files are optional */
    const char *out_path;
    const char *version; /* of inflight, as the page shows it */
    double from_s;       /* single steps are shown from then on, since the start of a run */
};

/* Limits of a page, over all runs. Larger data are reduced by a rule that the page states:
 * - requests: every k-th row of requests.csv, k the least power of two that leaves few enough;
 * - steps over time: means of bins of equal width, as many per point as there is room for;
 * - single steps, and the work of requests in them: the first ones after from_s, the same number
 *   for each point;
 * - distributions and all times: those of the first IFL_PAGE_POINTS points. */
enum {
    IFL_PAGE_REQUESTS = 100000,
    IFL_PAGE_BINS = 32768,
    IFL_PAGE_STEPS = 16000,
    IFL_PAGE_WORK = 40000,
    IFL_PAGE_PAIRS = 4000, /* of a validation */
    IFL_PAGE_POINTS = 256
};

/* Writes out_path, which appears when it is whole. The same reports give the same bytes. */
int ifl_page(const struct ifl_page_options *options, struct ifl_error *error);

#endif
