#include "page/packed.h"

#include <math.h>

int packed_put_names(const struct page *page, json_t *object, const struct packed_column *columns,
                     size_t n)
{
    json_t *names = json_array(), *scales = json_array(), *differences = json_array();
    int code = page_set(page, object, "columns", names);
    if (!code)
        code = page_set(page, object, "scales", scales);
    if (!code)
        code = page_set(page, object, "differences", differences);
    for (size_t i = 0; i < n && !code; i++) {
        code = page_append(page, names, json_string(columns[i].name));
        if (!code)
            code = page_append(page, scales, json_real(columns[i].scale));
        if (!code)
            code = page_append(page, differences, json_boolean(columns[i].as_differences));
    }
    return code;
}

static bool same(double a, double b)
{
    return (a <= b && a >= b) || (isnan(a) && isnan(b));
}

/* Rows without those at the end that repeat the one before them. */
static size_t n_needed(const double *value, size_t n_rows, size_t stride)
{
    while (n_rows > 1 && same(value[(n_rows - 2) * stride], value[(n_rows - 1) * stride]))
        n_rows--;
    return n_rows;
}

static json_t *pack_column(const struct packed_column *column, const double *value, size_t n_rows,
                           size_t stride)
{
    struct pack pack = {0};
    n_rows = n_needed(value, n_rows, stride);
    for (size_t row = 0; row < n_rows; row++)
        if (column->as_differences)
            pack_delta(&pack, value[row * stride], column->scale);
        else
            pack_real(&pack, value[row * stride], column->scale);
    return pack_take(&pack);
}

json_t *packed_put_rows(const struct page *page, json_t *points, size_t point,
                        const struct packed_column *columns, size_t n, const double *rows,
                        size_t n_rows, size_t stride)
{
    json_t *object = json_object(), *packed = json_array();
    int code = page_append(page, points, object);
    if (!code)
        code = page_set(page, object, "point", json_integer((json_int_t)point));
    if (!code)
        code = page_set(page, object, "n", json_integer((json_int_t)n_rows));
    if (!code)
        code = page_set(page, object, "packed", packed);
    for (size_t i = 0; i < n && !code; i++)
        code = page_append(page, packed, pack_column(&columns[i], rows + i, n_rows, stride));
    return code ? NULL : object;
}
