/* The cells of a figure's CSV. */
#include <math.h>

#include "plot/figures.h"
#include "row.h"

int figure_write_row(struct whole_file *file, const char *const *cells, size_t n,
                     struct ifl_error *error)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += row_text_bytes(cells[i]);
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    for (size_t i = 0; i < n; i++)
        at = row_text(at, cells[i]);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

struct figure_number figure_number(double value)
{
    struct figure_number number = {""};
    if (!isnan(value))
        snprintf(number.text, sizeof number.text, "%.9g", value);
    return number;
}

struct figure_number figure_series_number(const struct series_point *point)
{
    return figure_number((double)(point->series + 1));
}
