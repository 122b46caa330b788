#include "tables/swept.h"

#include <string.h>

#include "tables/columns.h"

bool swept_is_named(const char *header, const char *name)
{
    return strcmp(header, name) == 0 || strcmp(column_short_key(header), name) == 0;
}

bool swept_is_new(const struct sheet *sheet, size_t row, size_t column)
{
    for (size_t before = 0; before < row; before++)
        if (strcmp(sheet_cell(sheet, before, column), sheet_cell(sheet, row, column)) == 0)
            return false;
    return true;
}

size_t swept_choice(const struct sheet *sheet, size_t n_keys)
{
    for (size_t k = 0; k < n_keys; k++) {
        const char *name = sheet_header(sheet, k);
        if (swept_is_named(name, "rate_rps") || swept_is_named(name, "replication"))
            continue;
        for (size_t row = 1; row < sheet->n_rows; row++)
            if (swept_is_new(sheet, row, k))
                return k;
    }
    return SHEET_NO_COLUMN;
}
