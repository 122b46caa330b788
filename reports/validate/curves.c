/* validation_cdf.csv: the quantiles of the latencies, of the pairs that have them on both sides. */
#include <math.h>
#include <stdlib.h>

#include "record/quantile.h"
#include "tables/row.h"
#include "tables/sort.h"
#include "tables/whole_file.h"
#include "validate/findings.h"

static const enum metric shown[] = {TTFT, TPOT, E2E};
enum { N_SHOWN = sizeof shown / sizeof *shown };

struct curves {
    struct distribution of[N_SHOWN][N_SIDES];
};

static int describe(const struct pairs *pairs, struct curves *curves, struct ifl_error *error)
{
    int64_t *value[N_SIDES] = {malloc((pairs->n + 1) * sizeof(int64_t)),
                               malloc((pairs->n + 1) * sizeof(int64_t))};
    int rc = value[SIMULATED] && value[MEASURED] ? IFL_OK : ifl_fail_nomem(error);
    for (int m = 0; rc == IFL_OK && m < N_SHOWN; m++) {
        const size_t n = pairs_gather(pairs, shown[m], NULL, value);
        for (int s = 0; rc == IFL_OK && s < N_SIDES; s++) {
            rc = sort_by_key(value[s], NULL, n, error);
            if (rc == IFL_OK)
                quantile_describe(value[s], NULL, n, &curves->of[m][s]);
        }
    }
    free(value[SIMULATED]);
    free(value[MEASURED]);
    return rc;
}

static int write_row(struct whole_file *file, const struct curves *curves, size_t i,
                     struct ifl_error *error)
{
    char *at = whole_room(file, (1 + 2 * (size_t)N_SHOWN) * ROW_REAL_BYTES, error);
    if (!at)
        return error->code;
    at = row_real(at, quantile_of_grid(i));
    for (int m = 0; m < N_SHOWN; m++)
        for (int s = 0; s < N_SIDES; s++)
            at = row_real(at, curves->of[m][s].at_ns[i] * 1e-9);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_file(const struct curves *curves, const char *path, struct ifl_error *error)
{
    struct whole_file file;
    char header[256];
    int at = snprintf(header, sizeof header, "quantile");
    for (int m = 0; m < N_SHOWN; m++)
        at += snprintf(header + at, sizeof header - (size_t)at, ",simulated_%s,measured_%s",
                       metric_name[shown[m]], metric_name[shown[m]]);
    snprintf(header + at, sizeof header - (size_t)at, "\n");
    if (whole_open(&file, path, error))
        return error->code;
    int rc = whole_write(&file, header, error);
    for (size_t i = 0; rc == IFL_OK && i < QUANTILE_GRID; i++)
        rc = write_row(&file, curves, i, error);
    return whole_finish(&file, rc, error);
}

int write_curves(const struct pairs *pairs, const char *path, struct ifl_error *error)
{
    struct curves *curves = malloc(sizeof *curves);
    if (!curves)
        return ifl_fail_nomem(error);
    int rc = describe(pairs, curves, error);
    if (rc == IFL_OK)
        rc = write_file(curves, path, error);
    free(curves);
    return rc;
}
