/* The configuration of a run, and the rows of its summary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/inputs.h"
#include "page/run.h"
#include "tables/columns.h"
#include "tables/run_name.h"
#include "tables/whole_file.h"

enum { MOST_CONFIG_BYTES = 1 << 18 };

/* ---- rows ---- */

static enum column_type type_of(const char *header)
{
    static const char *const of_searches[] = {"cheapest", "pareto_ttft", "pareto_tbt"};
    for (size_t i = 0; i < sizeof of_searches / sizeof *of_searches; i++)
        if (strcmp(of_searches[i], header) == 0)
            return COLUMN_FLAG;
    if (strcmp(header, "status") == 0 || strcmp(header, "binding") == 0)
        return COLUMN_TEXT;
    for (size_t i = 0; i < n_summary_columns; i++)
        if (strcmp(summary_columns[i].name, header) == 0)
            return summary_columns[i].type;
    return COLUMN_REAL; /* _ci95 of a metric */
}

static json_t *cell_of(const struct page *page, const struct sheet *sheet, size_t n_keys,
                       size_t row, size_t column)
{
    const char *text = sheet_cell(sheet, row, column);
    const enum column_type type =
        column < n_keys ? COLUMN_TEXT : type_of(sheet_header(sheet, column));
    double value;
    if (type == COLUMN_TEXT)
        return page_text(text);
    if (type == COLUMN_FLAG)
        return *text ? json_boolean(strcmp(text, "true") == 0) : json_null();
    if (sheet_number(sheet, row, column, &value, page->error))
        return NULL;
    return page_number(value);
}

static int put_row(const struct page *page, const struct sheet *sheet, size_t n_keys, size_t row,
                   json_t *rows)
{
    json_t *cells = json_array();
    if (page_append(page, rows, cells))
        return page->error->code;
    for (size_t column = 0; column < sheet->n_columns; column++) {
        *page->error = (struct ifl_error){0};
        json_t *cell = cell_of(page, sheet, n_keys, row, column);
        if (!cell && page->error->code)
            return page->error->code;
        if (page_append(page, cells, cell))
            return page->error->code;
    }
    return IFL_OK;
}

/* {"columns": [...], "rows": [[...], ...]} */
static int put_sheet(const struct page *page, const struct page_run *run, const char *name,
                     const struct sheet *sheet, size_t n_keys)
{
    json_t *table = json_object(), *columns = json_array(), *rows = json_array();
    int code = page_set(page, run->json, name, table);
    if (!code)
        code = page_set(page, table, "columns", columns);
    if (!code)
        code = page_set(page, table, "rows", rows);
    for (size_t column = 0; column < sheet->n_columns && !code; column++)
        code = page_append(page, columns, page_text(sheet_header(sheet, column)));
    for (size_t row = 0; row < sheet->n_rows && !code; row++)
        code = put_row(page, sheet, n_keys, row, rows);
    return code;
}

static int put_replications(const struct page *page, const struct page_run *run)
{
    char path[4096];
    struct sheet sheet;
    size_t n_keys;
    if (!page_has_file(run, "replications.csv", path))
        return IFL_OK;
    if (sheet_read(&sheet, path, page->error))
        return page->error->code;
    int code = sheet_require(&sheet, "runs", &n_keys, page->error);
    if (!code)
        code = put_sheet(page, run, "replications", &sheet, n_keys);
    sheet_free(&sheet);
    return code;
}

/* ---- the configuration ---- */

static int put_config(const struct page *page, const struct page_run *run)
{
    char path[4096];
    if (!page_has_file(run, "config.yaml", path))
        return IFL_OK;
    FILE *file = fopen(path, "rb");
    if (!file)
        return whole_fail_on(path, "open", page->error);
    ifl_input_note(path);
    char *text = calloc(1, MOST_CONFIG_BYTES + 1);
    int code = IFL_OK;
    if (!text)
        code = ifl_fail_nomem(page->error);
    else if (fread(text, 1, MOST_CONFIG_BYTES, file) == 0 && ferror(file))
        code = whole_fail_on(path, "read", page->error);
    else
        code = page_set(page, run->json, "config", page_text(text));
    free(text);
    fclose(file);
    return code;
}

static int put_head(const struct page *page, const struct page_run *run)
{
    if (page_set(page, run->json, "name", page_text(run_name(run->dir))) ||
        page_set(page, run->json, "dir", page_text(run->dir)) ||
        page_set(page, run->json, "keys", json_integer((json_int_t)run->n_keys)))
        return page->error->code;
    return put_config(page, run);
}

int page_put_capacities(const struct page *page, struct page_run *run)
{
    if (sheet_require(&run->summary, "status", &run->n_keys, page->error) || put_head(page, run))
        return page->error->code;
    return put_sheet(page, run, "capacities", &run->summary, run->n_keys);
}

int page_put_summary(const struct page *page, struct page_run *run)
{
    if (sheet_require(&run->summary, "requests", &run->n_keys, page->error) ||
        put_head(page, run) ||
        page_set(page, run->json, "detailed", json_integer((json_int_t)run->n_points)) ||
        put_sheet(page, run, "summary", &run->summary, run->n_keys))
        return page->error->code;
    return put_replications(page, run);
}
