/* inflight fit: makes a hardware profile from tables of measurements, and tests a profile on other
 * tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "inflight/inputs.h"
#include "inflight/report.h"

#include "base/data.h"
#include "base/outputs.h"
#include "cli/commands.h"
#include "cli/out_dir.h"
#include "cli/progress.h"
#include "cli/usage.h"
#include "config/config.h"
#include "fit/calibration.h"
#include "fit/profile.h"
#include "fit/where.h"

/* ---- the tables that are understood ---- */

static int print_tables(void)
{
    for (const struct adapter *adapter = adapters(); adapter->name; adapter++) {
        printf("%s: %s\n   ", adapter->name, adapter->doc);
        for (int i = 0; i < ADAPTER_MAX_COLUMNS && adapter->columns[i]; i++)
            printf(" %s", adapter->columns[i]);
        printf("\n");
    }
    return 0;
}

/* ---- errors ---- */

static void print_errors(const char *name, const struct error_summary *summary)
{
    if (summary->n)
        printf("  %-22s %8zu %9.1f%% %9.1f%%\n", name, summary->n, 100 * summary->median,
               100 * summary->p95);
}

static void print_head(const char *what)
{
    printf("  %-22s %8s %10s %10s\n", what, "rows", "median", "p95");
}

static void note_passed_over(const struct fit_data *data)
{
    size_t n = 0;
    for (size_t i = 0; i < data->n; i++)
        n += data->samples[i].op == FIT_NONE;
    if (n)
        fprintf(stderr, "note: %zu of %zu rows belong to no operation of the cost model\n", n,
                data->n);
}

enum { MAX_HOLDS = 16 };

struct request {
    const char *like, *out_path, *plots_dir, *evaluate, *corrections;
    struct profile_texts texts;
    struct text_list train, where, holds, files;
    bool even_octaves, tables;
};

static int read_data(const struct request *request, struct fit_data *data, struct ifl_error *error)
{
    int code = fit_data_read(request->files.of, request->files.n, data, error);
    if (code)
        return code;
    code = where_keep(data, request->where.of, request->where.n, error);
    if (code) {
        fit_data_free(data);
        return code;
    }
    note_passed_over(data);
    if (request->even_octaves)
        fit_data_even_octaves(data);
    return 0;
}

/* ---- inflight fit --evaluate ---- */

static int evaluate(const struct request *request, struct ifl_error *error)
{
    struct fit_data data;
    struct fit_verdict verdict;
    struct platform platform;
    int code = hardware_load(request->evaluate, &platform, error);
    if (!code)
        code = read_data(request, &data, error);
    if (code)
        return code;
    code = fit_judge(&data, &platform, &verdict, error);
    if (!code) {
        code = fit_write_evaluation(&data, &verdict, "evaluation.csv", error);
        if (!code && request->corrections)
            code = fit_write_corrections(&data, &verdict, request->corrections, error);
        print_head(platform.hardware.name);
        for (int op = FIT_GEMM; op < FIT_OPS; op++)
            print_errors(form_of(op)->section, &verdict.rows[op]);
        print_errors("gemm, sum of a layer", &verdict.layers);
        fit_verdict_free(&verdict);
    }
    fit_data_free(&data);
    return code;
}

/* ---- inflight fit ---- */

static void print_parameters(const struct platform *platform, const struct fit_op_report *of)
{
    struct platform copy = *platform;
    printf("%s", of->form->section);
    for (int i = 0; i < of->form->n_parameters; i++) {
        const double value = *form_parameter_at(&copy, &of->form->parameters[i]);
        printf("%s %s %.4g", i ? "," : ":", of->form->parameters[i].name, value);
        if (of->solution.held[i])
            printf(" (assumed)");
        else if (of->solution.at_bound[i])
            printf(" (at its bound)");
        else
            printf(" +- %.2g", of->solution.std_error[i]);
    }
    printf("\n");
}

static void print_fit(const struct platform *platform, const struct fit_report *report)
{
    for (int op = FIT_GEMM; op < FIT_OPS; op++) {
        const struct fit_op_report *of = &report->of[op];
        if (!of->form)
            continue;
        print_parameters(platform, of);
        print_errors("fitted", &of->fitted);
        print_errors("held out", &of->held_out);
        print_errors("held out, layer sums", &of->held_out_layers);
    }
    if (report->of[FIT_GEMM_FP8].form)
        fprintf(stderr, "note: products in fp8 fit badly (the inputs' quantisation is a second "
                        "operation); the errors above are the warning\n");
}

static int draw(const struct fit_report *report, const char *dir, struct ifl_error *error)
{
    char path[512], script_dir[512];
    const struct ifl_drawing drawing = {.out_dir = dir,
                                        .script_dir = script_dir,
                                        .columns = 1,
                                        .source = "inflight " INFLIGHT_VERSION};
    struct out_dir out;
    int code = out_dir_make(&out, dir, error);
    if (!code)
        code = data_plot_scripts(script_dir, error);
    snprintf(path, sizeof path, "%s/measured_vs_fitted.csv", dir);
    if (!code)
        code = profile_write_points(report, path, error);
    if (!code)
        code = ifl_figure(&drawing, "measured_vs_fitted", "measured_vs_fitted", error);
    out_dir_tidy(&out);
    return code;
}

static int read_hold(const char *text, struct fit_hold *hold, struct ifl_error *error)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    if (equals)
        hold->value = strtod(equals + 1, &end);
    if (!equals || end == equals + 1 || *end || (size_t)(equals - text) >= sizeof hold->name ||
        !isfinite(hold->value) || hold->value < 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "--hold %s: expected SECTION.FIELD=NUMBER, a number from 0 on, as "
                        "gemm.wave_frac=0",
                        text);
    snprintf(hold->name, sizeof hold->name, "%.*s", (int)(equals - text), text);
    return 0;
}

/* Fills `like` with the profile that the fit begins from. */
static int begin(const struct request *request, const struct fit_data *data, struct platform *like,
                 struct ifl_error *error)
{
    return request->like ? hardware_load(request->like, like, error)
                         : calibration_begin(data, like, error);
}

/* Writes factors on top of the forms to a file beside the profile. Then fits again what is fitted
 * to whole steps, since the factors change these. */
static int correct(const struct request *request, const struct fit_data *data,
                   const struct fit_options *options, struct platform *platform,
                   struct fit_report *report, struct ifl_error *error)
{
    const char *path = request->corrections, *slash = strrchr(path, '/');
    struct fit_verdict verdict;
    snprintf(platform->hardware.corrections_path, sizeof platform->hardware.corrections_path, "%s",
             slash ? slash + 1 : path);
    int code = fit_judge(data, platform, &verdict, error);
    if (code)
        return code;
    code = fit_write_corrections(data, &verdict, path, error);
    fit_verdict_free(&verdict);
    if (!code)
        code = corrections_read(path, &platform->hardware.corrections, error);
    return code || !report->of[FIT_HOST].form
               ? code
               : fit_host_again(data, options, platform, report, error);
}

static int put_out(const struct request *request, struct platform *platform,
                   const struct platform *like, const struct fit_report *report,
                   struct ifl_error *error)
{
    int code = request->like ? 0 : calibration_check_whole(report, error);
    print_head("");
    print_fit(platform, report);
    profile_describe(platform, request->like ? like : NULL, &request->texts, report);
    if (!code && request->out_path)
        code = profile_write(platform, report, request->out_path, error);
    if (!code && request->plots_dir)
        code = draw(report, request->plots_dir, error);
    return code;
}

/* Rows of operations that are fitted, of all that belong to one. */
struct fit_watch {
    atomic_ullong n_fitted;
    size_t n_rows;
};

static void look(void *context, struct progress_state *state)
{
    struct fit_watch *watch = context;
    const unsigned long long n = atomic_load(&watch->n_fitted);
    state->done_frac = (double)n / (double)watch->n_rows;
    snprintf(state->text, sizeof state->text, "%llu of %zu rows fitted", n, watch->n_rows);
}

static int fit_watched(const struct fit_data *data, struct fit_options *options,
                       struct platform *platform, struct fit_report *report,
                       struct ifl_error *error)
{
    struct fit_watch watch = {.n_rows = 0};
    struct progress progress = {.look = look, .context = &watch};
    for (size_t i = 0; i < data->n; i++)
        watch.n_rows += data->samples[i].op != FIT_NONE;
    options->n_fitted = &watch.n_fitted;
    progress_start(&progress);
    const int code = fit_profile(data, options, platform, report, error);
    progress_stop(&progress);
    options->n_fitted = NULL;
    return code;
}

/* All that is read has been read by then. */
static int check_outputs(const struct request *request, struct ifl_error *error)
{
    static const char *const drawn[] = {"measured_vs_fitted.csv", NULL};
    if ((request->out_path && ifl_output_check(request->out_path, error) < 0) ||
        (request->corrections && ifl_output_check(request->corrections, error) < 0) ||
        (request->plots_dir && outputs_check(request->plots_dir, drawn, error) < 0))
        return error->code;
    return 0;
}

static int fit(const struct request *request, struct ifl_error *error)
{
    struct fit_hold holds[MAX_HOLDS];
    struct fit_options options = {.train = request->train.of,
                                  .n_train = request->train.n,
                                  .hold = holds,
                                  .n_hold = request->holds.n};
    if (request->holds.n > MAX_HOLDS)
        return ifl_fail(error, IFL_E_INPUT, "--hold: %zu of them, expected at most %d",
                        request->holds.n, MAX_HOLDS);
    for (size_t i = 0; i < request->holds.n; i++)
        if (read_hold(request->holds.of[i], &holds[i], error))
            return error->code;
    struct fit_data data;
    struct fit_report report = {.n = 0};
    struct platform like, platform;
    int code = read_data(request, &data, error);
    if (code)
        return code;
    code = begin(request, &data, &like, error);
    platform = like;
    if (!code)
        code = check_outputs(request, error);
    if (!code)
        code = fit_watched(&data, &options, &platform, &report, error);
    if (!code && request->corrections)
        code = correct(request, &data, &options, &platform, &report, error);
    if (!code)
        code = put_out(request, &platform, &like, &report, error);
    fit_report_free(&report);
    fit_data_free(&data);
    return code;
}

/* ---- the command ---- */

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    struct ifl_error error;
    if (options_read(&command_fit, &request, argc, argv, &request.files) < 0)
        return 2;
    if (request.tables)
        return print_tables();
    if (request.files.n == 0)
        return usage_fail(&command_fit);
    const int code = request.evaluate ? evaluate(&request, &error) : fit(&request, &error);
    return code < 0 ? cli_fail(&error) : 0;
}

static const struct option_spec options[] = {
    {"--like", NULL, OPTION_TEXT, offsetof(struct request, like), "PROFILE",
     "profile with the peaks and with all that the tables do not cover", COMPLETE_HARDWARE},
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_path), "OUT.yaml",
     "file for the profile", COMPLETE_FILE},
    {"--train", NULL, OPTION_LIST, offsetof(struct request, train), "GROUP",
     "fit this group of rows and hold out the others", COMPLETE_NOTHING},
    {"--where", NULL, OPTION_LIST, offsetof(struct request, where), "CONDITION",
     "keep rows such as m>=16", COMPLETE_NOTHING},
    {"--about", NULL, OPTION_TEXT, offsetof(struct request, texts.about), "TEXT",
     "the profile's text `about`", COMPLETE_NOTHING},
    {"--source", NULL, OPTION_TEXT, offsetof(struct request, texts.source), "TEXT",
     "source of the measurements", COMPLETE_NOTHING},
    {"--assumed", NULL, OPTION_TEXT, offsetof(struct request, texts.assumed), "TEXT",
     "numbers that were not measured", COMPLETE_NOTHING},
    {"--hold", NULL, OPTION_LIST, offsetof(struct request, holds), "SECTION.FIELD=NUMBER",
     "fix a parameter at a value instead of fitting it", COMPLETE_NOTHING},
    {"--even-octaves", NULL, OPTION_FLAG, offsetof(struct request, even_octaves), NULL,
     "give products of 1, 2 to 3, 4 to 7 rows and so on equal weight, whatever the number of sizes "
     "in a table",
     COMPLETE_NOTHING},
    {"--corrections", NULL, OPTION_TEXT, offsetof(struct request, corrections), "OUT.csv",
     "write factors that correct the fitted forms, and fit with them", COMPLETE_FILE},
    {"--plots", NULL, OPTION_TEXT, offsetof(struct request, plots_dir), "DIR",
     "draw measured against fitted", COMPLETE_FOLDER},
    {"--evaluate", NULL, OPTION_TEXT, offsetof(struct request, evaluate), "PROFILE",
     "judge this profile on the tables, and fit nothing", COMPLETE_HARDWARE},
    {"--tables", NULL, OPTION_FLAG, offsetof(struct request, tables), NULL,
     "list the known columns of tables", COMPLETE_NOTHING},
};

const struct command command_fit = {
    .name = "fit",
    .doc = "fit a hardware profile to measurements",
    .arguments = "FILE...",
    .example = "inflight fit cpu.csv -o cpu.yaml",
    .notes = "All tables but a sheet of inflight calibrate need --like.",
    .completion = COMPLETE_FILE,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
