#include "record/quantiles_csv.h"

#include <math.h>
#include <unistd.h>

#include "tables/sheet.h"

static int look_up(const struct sheet *sheet, const char *name, const double *wanted,
                   size_t n_wanted, double *found_s, struct ifl_error *error)
{
    size_t quantile, column;
    if (sheet_require(sheet, "quantile", &quantile, error) ||
        sheet_require(sheet, name, &column, error))
        return error->code;
    for (size_t row = 0; row < sheet->n_rows; row++) {
        double of;
        if (sheet_number(sheet, row, quantile, &of, error))
            return error->code;
        for (size_t i = 0; i < n_wanted; i++)
            if (fabs(of - wanted[i]) < 1e-9 && sheet_number(sheet, row, column, &found_s[i], error))
                return error->code;
    }
    return IFL_OK;
}

int quantiles_csv_read(const char *dir, const char *column, const double *wanted, size_t n_wanted,
                       double *found_s, struct ifl_error *error)
{
    char path[4096];
    struct sheet sheet;
    for (size_t i = 0; i < n_wanted; i++)
        found_s[i] = NAN;
    snprintf(path, sizeof path, "%s/quantiles.csv", dir);
    if (access(path, F_OK) != 0)
        return IFL_OK;
    int rc = sheet_read(&sheet, path, error);
    if (rc == IFL_OK)
        rc = look_up(&sheet, column, wanted, n_wanted, found_s, error);
    sheet_free(&sheet);
    return rc;
}
