/* Reads the runs, arranges the table, and writes it in one of the formats. */
#include "inflight/typeset.h"

#include "typeset/text.h"

int ifl_table(const struct ifl_table *table, struct ifl_error *error)
{
    static void (*const put[IFL_N_TABLE_FORMATS])(const struct grid *grid) = {
        [IFL_TABLE_LATEX] = put_latex,
        [IFL_TABLE_MARKDOWN] = put_markdown,
        [IFL_TABLE_CSV] = put_csv};
    struct grid grid;
    ifl_assert(table->n_runs > 0 && table->format < IFL_N_TABLE_FORMATS);
    ifl_assert(table->digits >= 1 && table->digits <= 9);
    if (grid_read(&grid, table, error))
        return error->code;
    put[table->format](&grid);
    grid_free(&grid);
    return IFL_OK;
}
