#include "cli/validate_live.h"

#include <gsl/gsl_errno.h>
#include <stdio.h>
#include <string.h>

#include "inflight/page.h"
#include "inflight/validate.h"

#include "base/data.h"
#include "base/outputs.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/out_dir.h"
#include "run/point.h"

struct work {
    const struct validate_live *request;
    char config_path[512], live_dir[IFL_PATH_BYTES], simulated_dir[IFL_PATH_BYTES];
    struct study *study;
    struct config config;
    bool has_config;
    struct out_dir live, simulated;
    struct replay_result measured;
    struct ifl_error error;
};

static int load(struct work *work)
{
    const struct validate_live *request = work->request;
    const struct study_options study = {work->config_path, request->sets, request->n_sets};
    int rc = data_find_config(request->config, work->config_path, &work->error);
    if (rc == 0)
        rc = study_load(&study, &work->study, &work->error);
    if (rc == 0 && study_n_points(work->study) > 1)
        rc = ifl_fail_at(&work->error, work->config_path, 0, 0,
                         "%zu points, expected one: a server has no sweep and no replications",
                         study_n_points(work->study));
    if (rc == 0)
        rc = study_read(work->study, 0, &work->config, &work->error);
    work->has_config = rc == 0;
    if (rc == 0 && work->config.executor != EXECUTOR_SIM)
        rc = ifl_fail_at(&work->error, work->config_path, 0, 0,
                         "an engine flies, expected executor: sim: the server is what is measured");
    return rc;
}

static int check_outputs(struct work *work)
{
    static const char *const simulated[] = {"config.yaml", "requests.csv", "quantiles.csv",
                                            "summary.csv", NULL};
    static const char *const page[] = {"report.html", NULL};
    inputs_note(&work->config);
    if (outputs_check(work->live_dir, replay_files, &work->error) < 0 ||
        outputs_check(work->simulated_dir, simulated, &work->error) < 0 ||
        outputs_check(work->simulated_dir, ifl_validation_files, &work->error) < 0)
        return work->error.code;
    return outputs_check(work->request->out_dir, page, &work->error);
}

static int make_dirs(struct work *work)
{
    const char *dir = work->request->out_dir;
    snprintf(work->live_dir, sizeof work->live_dir, "%.600s/live", dir);
    snprintf(work->simulated_dir, sizeof work->simulated_dir, "%.600s/simulated", dir);
    const int rc = check_outputs(work) < 0
                       ? work->error.code
                       : out_dir_make(&work->live, work->live_dir, &work->error);
    return rc < 0 ? rc : out_dir_make(&work->simulated, work->simulated_dir, &work->error);
}

/* ---- the simulated run ---- */

static int write_config(struct work *work)
{
    char path[IFL_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/config.yaml", work->simulated_dir);
    return study_write_file(work->study, path, &work->error);
}

static int simulate(struct work *work)
{
    char requests[IFL_PATH_BYTES + 16], quantiles[IFL_PATH_BYTES + 16],
        summary[IFL_PATH_BYTES + 16];
    struct trace_shelf traces;
    struct profile_shelf profiles;
    struct point_result result;
    snprintf(requests, sizeof requests, "%s/requests.csv", work->simulated_dir);
    snprintf(quantiles, sizeof quantiles, "%s/quantiles.csv", work->simulated_dir);
    snprintf(summary, sizeof summary, "%s/summary.csv", work->simulated_dir);
    trace_shelf_init(&traces, (struct ifl_notes){0});
    profile_shelf_init(&profiles);
    const struct point_options options = {
        .config = &work->config,
        .reports = {.requests_path = requests, .quantiles_path = quantiles},
        .traces = &traces,
        .profiles = &profiles,
        .is_last = true,
        .notes = {work->request->live->quiet ? NULL : cli_note, NULL},
        .stop = &interrupt_asked,
    };
    int rc = point_fly(&options, &result, &work->error);
    const struct ifl_points points = ifl_one_point(&result.summary);
    if (rc == 0)
        rc = ifl_write_summary(summary, &points, &work->error);
    trace_shelf_finish(&traces);
    profile_shelf_finish(&profiles);
    return rc == 0 ? write_config(work) : rc;
}

/* ---- both ---- */

/* An exit code that is not 0 has had its line. */
static int measure(struct work *work)
{
    const struct validate_live *request = work->request;
    struct live live;
    if (live_init(&live, "validate", request->url, request->live, &work->config, work->live_dir) <
        0)
        return 2;
    const int rc = live_replay(&live, request->live, &work->measured, &work->error);
    live_finish(&live);
    return rc < 0 ? cli_fail(&work->error) : 0;
}

int validate_live(const struct validate_live *request)
{
    struct work work = {.request = request};
    gsl_set_error_handler_off();
    interrupt_catch();
    int rc = load(&work);
    if (rc == 0)
        rc = make_dirs(&work);
    int code = rc < 0 ? cli_fail(&work.error) : measure(&work);
    if (code == 0 && simulate(&work) < 0)
        code = cli_fail(&work.error);
    if (code == 0 && !request->live->quiet)
        replay_print(&work.measured, stdout);
    if (work.has_config)
        config_finish(&work.config);
    study_free(work.study);
    out_dir_tidy(&work.simulated);
    out_dir_tidy(&work.live);
    return code;
}

int validate_live_page(const struct validate_live *request)
{
    char live_dir[IFL_PATH_BYTES], simulated_dir[IFL_PATH_BYTES], path[IFL_PATH_BYTES];
    const char *const dirs[] = {simulated_dir, live_dir};
    struct ifl_error error;
    snprintf(live_dir, sizeof live_dir, "%.600s/live", request->out_dir);
    snprintf(simulated_dir, sizeof simulated_dir, "%.600s/simulated", request->out_dir);
    snprintf(path, sizeof path, "%.600s/report.html", request->out_dir);
    const struct ifl_page_options page = {
        .n_runs = 2, .run_dirs = dirs, .out_path = path, .version = INFLIGHT_VERSION};
    if (ifl_page(&page, &error) < 0)
        return cli_fail(&error);
    if (!request->live->quiet)
        printf("%s\n", path);
    return 0;
}
