#include "validate/findings.h"

#include <math.h>
#include <string.h>

#include "tables/row.h"
#include "tables/whole_file.h"

static int add(struct findings *findings, const struct finding *finding, struct ifl_error *error)
{
    if (findings->n == findings->cap) {
        const size_t cap = 2 * findings->cap + 64;
        struct finding *of = realloc(findings->of, cap * sizeof *of);
        if (!of)
            return ifl_fail_nomem(error);
        findings->of = of;
        findings->cap = cap;
    }
    findings->of[findings->n++] = *finding;
    return IFL_OK;
}

int findings_add(struct findings *findings, const char *metric, const char *statistic, size_t n,
                 double simulated, double measured, struct ifl_error *error)
{
    const struct finding finding = {metric, statistic, n, simulated, measured, simulated - measured,
                                    NAN,    NAN};
    return add(findings, &finding, error);
}

int findings_add_error(struct findings *findings, const char *metric, const char *statistic,
                       size_t n, double value, struct ifl_error *error)
{
    const struct finding finding = {metric, statistic, n, NAN, NAN, value, NAN, NAN};
    return add(findings, &finding, error);
}

const struct finding *findings_get(const struct findings *findings, const char *metric,
                                   const char *statistic)
{
    for (size_t i = 0; i < findings->n; i++)
        if (strcmp(findings->of[i].metric, metric) == 0 &&
            strcmp(findings->of[i].statistic, statistic) == 0)
            return &findings->of[i];
    return NULL;
}

void findings_free(struct findings *findings)
{
    free(findings->of);
    *findings = (struct findings){0};
}

static int write_finding(struct whole_file *file, const struct finding *f, struct ifl_error *error)
{
    const size_t n_bytes = row_text_bytes(f->metric) + row_text_bytes(f->statistic) +
                           ROW_NUMBER_BYTES + (size_t)7 * ROW_REAL_BYTES;
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    at = row_text(at, f->metric);
    at = row_text(at, f->statistic);
    at = row_uint(at, f->n);
    at = row_real(at, f->simulated);
    at = row_real(at, f->measured);
    at = row_real(at, f->error);
    at = row_real(at, f->measured > 0 ? f->error / f->measured : (double)NAN);
    at = row_real(at, f->low);
    at = row_real(at, f->high);
    at = row_word(at, !finding_has_interval(f) ? "" : finding_is_inside(f) ? "true" : "false");
    whole_commit(file, row_end(at));
    return IFL_OK;
}

int findings_write(const struct findings *findings, const char *path, struct ifl_error *error)
{
    struct whole_file file;
    if (whole_open(&file, path, error))
        return error->code;
    int rc = whole_write(
        &file, "metric,statistic,n,simulated,measured,error,relative_error,p05,p95,inside\n",
        error);
    for (size_t i = 0; rc == IFL_OK && i < findings->n; i++)
        rc = write_finding(&file, &findings->of[i], error);
    return whole_finish(&file, rc, error);
}
