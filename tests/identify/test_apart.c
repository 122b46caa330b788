/* Runs of one deployment at two rates are fitted together; those of two deployments are refused. */
#include <criterion/criterion.h>
#include <gsl/gsl_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drawn.h"

enum { REQUESTS = 300 };

/* A run at that part of the rate that the case's deployment takes. */
static bool record(struct deployment_case *c, uint64_t number, double rate_rps,
                   struct recording *recording)
{
    const bool whole = case_record(c, number, rate_rps, REQUESTS);
    *recording = c->recording;
    c->recording = (struct recording){0};
    return whole;
}

/* 1: refused as of two deployments, 0: fitted, -1: a request of the runs did not finish. `slower`:
 * what a step of the second run takes more, in s. */
static int pair(uint64_t number, double slower_s)
{
    struct deployment_case c = {.system = &systems[number % N_SYSTEMS]};
    struct recording runs[2] = {{0}};
    struct identified found;
    struct ifl_error error = {0};
    int rc = -1;
    case_load(&c);
    case_draw_truth(&c, number);
    const double rate_rps = case_choose_rate(&c, number);
    bool whole = record(&c, number, 0.6 * rate_rps, &runs[0]);
    c.truth[HOST_STEP] += slower_s;
    whole = whole && record(&c, number + 5000, rate_rps, &runs[1]);
    if (whole) {
        const struct identify_options options = {
            .setting = case_setting(&c), .recordings = runs, .n_recordings = 2};
        rc = identify(&options, &found, &error) < 0;
        cr_expect(!rc || strstr(error.text, "not of one deployment"), "%s", error.text);
        if (getenv("IDENTIFY_SHOW"))
            fprintf(stderr, "%d %s %g: %d %s\n", (int)number, c.system->model, slower_s, rc,
                    rc ? error.text : "");
    }
    recording_free(&runs[0]);
    recording_free(&runs[1]);
    case_unload(&c);
    return rc;
}

/* Of two of a hundred pairs at the most. */
Test(apart, pairs_of_one_deployment_are_fitted)
{
    const char *asked = getenv("IDENTIFY_DEPLOYMENTS");
    const int n = asked ? atoi(asked) : 4;
    int n_all = 0, refused = 0;
    gsl_set_error_handler_off();
    for (int i = 0; i < n; i++) {
        const int is = pair(700 + (uint64_t)i, 0);
        n_all += is >= 0;
        refused += is > 0;
    }
    cr_assert(2 * n_all >= n, "%d of %d pairs finish", n_all, n);
    cr_assert(refused * 50 <= n_all, "%d of %d refused", refused, n_all);
}

/* 1.5 ms a step, of steps of 8 to 60 ms. */
Test(apart, pairs_of_two_deployments_are_refused)
{
    const char *asked = getenv("IDENTIFY_DEPLOYMENTS");
    const int n = asked ? atoi(asked) : 3;
    int n_all = 0, refused = 0;
    gsl_set_error_handler_off();
    for (int i = 0; i < n; i++) {
        const int is = pair(1 + 8 * (uint64_t)i, 0.002);
        n_all += is >= 0;
        refused += is > 0;
    }
    cr_assert(4 * refused >= 3 * n_all, "%d of %d refused", refused, n_all);
}
