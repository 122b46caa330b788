/* Error bars: the 90% intervals in intervals.csv of a simulated ensemble. They cover all its
 * requests, not the pairs alone. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tables/sheet.h"
#include "validate/findings.h"

enum { METRIC, LOW, HIGH, N_READ };

/* The summary's name of a finding: mean of ttft_s is mean_ttft_s; a value has the metric's own. */
static void name_of(const struct finding *f, char name[64])
{
    if (strcmp(f->statistic, "value") == 0)
        snprintf(name, 64, "%s", f->metric);
    else
        snprintf(name, 64, "%s_%s", f->statistic, f->metric);
}

static int fill(struct finding *f, const struct sheet *sheet, const size_t column[N_READ],
                struct ifl_error *error)
{
    char name[64];
    name_of(f, name);
    for (size_t row = 0; row < sheet->n_rows; row++)
        if (strcmp(sheet_cell(sheet, row, column[METRIC]), name) == 0)
            return sheet_number(sheet, row, column[LOW], &f->low, error)
                       ? error->code
                       : sheet_number(sheet, row, column[HIGH], &f->high, error);
    return IFL_OK;
}

static int fill_all(struct findings *findings, const struct sheet *sheet, struct ifl_error *error)
{
    static const char *const names[N_READ] = {"metric", "p05", "p95"};
    size_t column[N_READ];
    int rc = IFL_OK;
    for (int c = 0; rc == IFL_OK && c < N_READ; c++)
        rc = sheet_require(sheet, names[c], &column[c], error);
    for (size_t i = 0; rc == IFL_OK && i < findings->n; i++)
        rc = fill(&findings->of[i], sheet, column, error);
    return rc;
}

int find_intervals(const struct ifl_validation *validation, struct findings *findings,
                   struct ifl_error *error)
{
    char path[4096];
    struct sheet sheet;
    if (!validation->simulated.dir)
        return IFL_OK;
    snprintf(path, sizeof path, "%s/intervals.csv", validation->simulated.dir);
    if (access(path, F_OK) != 0)
        return IFL_OK;
    int rc = sheet_read(&sheet, path, error);
    if (rc == IFL_OK)
        rc = fill_all(findings, &sheet, error);
    sheet_free(&sheet);
    return rc;
}
