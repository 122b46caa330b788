/* The cells of a figure's CSV. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "plot/figures.h"
#include "tables/row.h"

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

int figure_write_head(struct whole_file *file, const struct plot *plot, const char *rest,
                      struct ifl_error *error)
{
    const char *const cells[] = {"number", "series", plot->set->x_name, "saturated"};
    size_t n_bytes = 0;
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        n_bytes += row_text_bytes(cells[i]);
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        at = row_text(at, cells[i]);
    whole_commit(file, at);
    const int code = whole_write(file, rest, error);
    return code ? code : whole_write(file, "\n", error);
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

const char *figure_saturated(const struct series_point *point)
{
    return point->saturated ? "true" : "false";
}

void figure_say(const struct plot *plot, const char *format, ...)
{
    char *const text = plot->note->text;
    const size_t cap = sizeof plot->note->text;
    va_list args;
    if (*text)
        snprintf(text + strlen(text), cap - strlen(text), "; ");
    va_start(args, format);
    vsnprintf(text + strlen(text), cap - strlen(text), format, args);
    va_end(args);
}
