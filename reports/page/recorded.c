/* What a validation found: the simulated run beside the recorded one. */
#include <string.h>

#include "inflight/minmax.h"
#include "page/run.h"

/* A cell as a number if it is one, as a text if it is not; an empty one is null. */
static json_t *cell_of(const struct sheet *sheet, size_t row, size_t column)
{
    const char *text = sheet_cell(sheet, row, column);
    double value;
    struct ifl_error unused;
    if (!*text)
        return json_null();
    return sheet_number(sheet, row, column, &value, &unused) ? page_text(text) : page_number(value);
}

static int put_rows(const struct page *page, const struct sheet *sheet, size_t every, json_t *table)
{
    json_t *columns = json_array(), *rows = json_array();
    int code = page_set(page, table, "columns", columns);
    if (!code)
        code = page_set(page, table, "rows", rows);
    for (size_t c = 0; c < sheet->n_columns && !code; c++)
        code = page_append(page, columns, page_text(sheet_header(sheet, c)));
    for (size_t row = 0; row < sheet->n_rows && !code; row += every) {
        json_t *cells = json_array();
        code = page_append(page, rows, cells);
        for (size_t c = 0; c < sheet->n_columns && !code; c++)
            code = page_append(page, cells, cell_of(sheet, row, c));
    }
    return code ? code : page_set(page, table, "every", json_integer((json_int_t)every));
}

/* Every k-th row, so that at most `most` are left. */
static int put_file(const struct page *page, const struct page_run *run, json_t *object,
                    const char *name, const char *file, size_t most)
{
    char path[4096];
    struct sheet sheet;
    if (!page_has_file(run, file, path))
        return IFL_OK;
    if (sheet_read(&sheet, path, page->error))
        return page->error->code;
    json_t *table = json_object();
    int code = page_set(page, object, name, table);
    if (!code)
        code = put_rows(page, &sheet, ifl_max((sheet.n_rows + most - 1) / most, 1), table);
    sheet_free(&sheet);
    return code;
}

int page_put_recorded(const struct page *page, const struct page_run *run)
{
    char path[4096];
    json_t *object;
    if (!page_has_file(run, "validation.csv", path))
        return IFL_OK;
    if (page_set(page, run->json, "recorded", object = json_object()) ||
        put_file(page, run, object, "findings", "validation.csv", SIZE_MAX / 2) ||
        put_file(page, run, object, "curves", "validation_cdf.csv", SIZE_MAX / 2))
        return page->error->code;
    return put_file(page, run, object, "pairs", "validation_requests.csv",
                    IFL_PAGE_PAIRS / page->n_runs + 1);
}
