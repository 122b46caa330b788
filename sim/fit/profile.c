#include "fit/profile.h"

#include <math.h>
#include <string.h>

#include "base/new_file.h"

static const struct fit_op_report *report_of(const struct fit_report *report, const char *section)
{
    for (int op = FIT_GEMM; op < FIT_OPS; op++)
        if (report->of[op].form && strcmp(report->of[op].form->section, section) == 0)
            return &report->of[op];
    return NULL;
}

/* ---- what is assumed ---- */

/* Sections that measurements can cover; gpu and memory come from the data sheet. */
static const char *const sections[] = {"gemm",        "prefill",     "decode",      "decode_mixed",
                                       "elementwise", "allreduce_2", "allreduce_4", "allreduce_8",
                                       "host",        "swap_out",    "swap_in",     "block_copy"};

/* Fitted times are of no deployment that has a name. Its other numbers stay. */
static void own_deployment(struct platform *platform, const struct fit_report *report)
{
    struct deployment *deployment = &platform->deployment;
    if (!report->of[FIT_HOST].form && !report->of[FIT_STEP].form)
        return;
    platform->deployment_name[0] = '\0';
    deployment->about[0] = deployment->source[0] = deployment->assumed[0] = '\0';
}

void profile_describe(struct platform *platform, const struct platform *like,
                      const struct profile_texts *texts, const struct fit_report *report)
{
    struct hardware *hardware = &platform->hardware;
    char assumed[sizeof hardware->assumed] = "";
    size_t n = 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (!report_of(report, sections[i]))
            n += (size_t)snprintf(assumed + n, sizeof assumed - n, "%s%s", n ? ", " : "",
                                  sections[i]);
    if (like)
        snprintf(hardware->assumed, sizeof hardware->assumed, "%.300s%s%.128s", assumed,
                 n ? ": as in " : "", n ? like->hardware.name : "");
    else
        snprintf(hardware->assumed, sizeof hardware->assumed, "memory, host.layer_s");
    if (texts->assumed)
        snprintf(hardware->assumed, sizeof hardware->assumed, "%s", texts->assumed);
    if (texts->about)
        snprintf(hardware->about, sizeof hardware->about, "%s", texts->about);
    if (texts->source)
        snprintf(hardware->source, sizeof hardware->source, "%s", texts->source);
    own_deployment(platform, report);
}

/* ---- remarks behind the numbers ---- */

struct remarks {
    const struct fit_report *report;
    char text[160];
};

static const char *remark_section(struct remarks *remarks, const struct fit_op_report *of)
{
    int n = snprintf(remarks->text, sizeof remarks->text, "%zu rows", of->solution.n_rows);
    if (of->held_out.n)
        snprintf(remarks->text + n, sizeof remarks->text - (size_t)n,
                 "; held out %.1f%% (median), %.1f%% (p95)", 100 * of->held_out.median,
                 100 * of->held_out.p95);
    return remarks->text;
}

static const char *remark_field(struct remarks *remarks, const struct fit_op_report *of,
                                const char *field)
{
    for (int i = 0; i < of->form->n_parameters; i++) {
        if (strcmp(of->form->parameters[i].name, field) != 0)
            continue;
        if (of->solution.held[i] && of->solution.value[i] == 0)
            return NULL;
        if (of->solution.held[i])
            return "assumed: no row shows it";
        if (of->solution.at_bound[i])
            return "at its bound";
        snprintf(remarks->text, sizeof remarks->text, "+- %.2g", of->solution.std_error[i]);
        return remarks->text;
    }
    return NULL;
}

static const char *remark(void *context, const char *section, const char *field)
{
    struct remarks *remarks = context;
    const struct fit_op_report *of = report_of(remarks->report, section);
    if (!of)
        return NULL;
    return field ? remark_field(remarks, of, field) : remark_section(remarks, of);
}

/* ---- how well they fit, for programs ---- */

static void put_summary(FILE *out, const char *name, const struct error_summary *summary)
{
    if (summary->n)
        fprintf(out, ", %s_rows: %zu, %s_median: %.4f, %s_p95: %.4f", name, summary->n, name,
                summary->median, name, summary->p95);
}

static void put_fit(FILE *out, const struct fit_op_report *of)
{
    fprintf(out, "  %s: {rows: %zu", of->form->section, of->solution.n_rows);
    put_summary(out, "fitted", &of->fitted);
    put_summary(out, "held_out", &of->held_out);
    put_summary(out, "held_out_layer", &of->held_out_layers);
    put_summary(out, "held_out_shape", &of->held_out_shapes);
    fprintf(out, ", std_error: {");
    for (int i = 0; i < of->form->n_parameters; i++)
        fprintf(out, "%s%s: %.3g", i ? ", " : "", of->form->parameters[i].name,
                of->solution.at_bound[i] ? 0 : of->solution.std_error[i]);
    fprintf(out, "}}\n");
}

int profile_write(const struct platform *platform, const struct fit_report *report,
                  const char *path, struct ifl_error *error)
{
    struct remarks remarks = {.report = report};
    struct new_file file;
    if (new_file_open(&file, path, error))
        return error->code;
    fprintf(file.out, "# Written by inflight fit; errors are |predicted - measured| / measured.\n");
    hardware_write(platform, remark, &remarks, file.out);
    fprintf(file.out, "\nfit:\n");
    for (int op = FIT_GEMM; op < FIT_OPS; op++)
        if (report->of[op].form)
            put_fit(file.out, &report->of[op]);
    return new_file_close(&file, 0, error);
}

/* ---- measured against fitted ---- */

enum { MAX_POINTS = 1000 };

static size_t count_rows(const struct fit_report *report, enum fit_op op)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n; i++)
        n += report->rows[i]->op == op;
    return n;
}

static void put_points(FILE *out, const struct fit_report *report, enum fit_op op, int number)
{
    const size_t stride = (count_rows(report, op) + MAX_POINTS - 1) / MAX_POINTS;
    size_t nth = 0;
    for (size_t i = 0; i < report->n; i++)
        if (report->rows[i]->op == op && nth++ % stride == 0)
            fprintf(out, "%d,%s,%.9g,%.9g\n", number, form_of(op)->section,
                    report->rows[i]->measured_s, report->predicted_s[i]);
}

int profile_write_points(const struct fit_report *report, const char *path, struct ifl_error *error)
{
    struct new_file file;
    int number = 0;
    if (new_file_open(&file, path, error))
        return error->code;
    fprintf(file.out, "number,op_class,measured_s,predicted_s\n");
    for (int op = FIT_GEMM; op < FIT_OPS; op++)
        if (report->of[op].form)
            put_points(file.out, report, op, ++number);
    return new_file_close(&file, 0, error);
}
