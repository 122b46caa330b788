/* CSV: full keys, columns as summary.csv has them, of a group with "[KEY=VALUE]" behind the name,
 * and all digits. */
#include <math.h>
#include <string.h>

#include "typeset/text.h"

static void put_field(FILE *out, const char *text, const char *end)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fprintf(out, "%s%s", text, end);
        return;
    }
    putc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            putc('"', out);
        putc(*c, out);
    }
    fprintf(out, "\"%s", end);
}

static void put_name(const struct grid *grid, size_t group, size_t metric, const char *suffix,
                     const char *end)
{
    char name[512];
    if (grid->pivot == GRID_NO_KEY)
        snprintf(name, sizeof name, "%s%s", grid->columns[metric], suffix);
    else
        snprintf(name, sizeof name, "%s%s[%s=%s]", grid->columns[metric], suffix,
                 grid->keys[grid->pivot], grid->groups[group]);
    put_field(grid->of->out, name, end);
}

static void put_number(FILE *out, double value, const char *end)
{
    if (isnan(value))
        fputs(end, out);
    else
        fprintf(out, "%.9g%s", value, end);
}

void put_csv(const struct grid *grid)
{
    FILE *out = grid->of->out;
    const size_t n = grid->n_groups * grid->n_metrics;
    for (size_t h = 0; h < grid->n_heads; h++)
        put_field(out, grid->keys[grid->heads[h]], ",");
    for (size_t i = 0; i < n; i++) {
        const char *end = i + 1 < n ? "," : "\n";
        put_name(grid, i / grid->n_metrics, i % grid->n_metrics, "",
                 grid->has_intervals ? "," : end);
        if (grid->has_intervals)
            put_name(grid, i / grid->n_metrics, i % grid->n_metrics, "_ci95", end);
    }
    for (size_t line = 0; line < grid->n_lines; line++) {
        for (size_t h = 0; h < grid->n_heads; h++)
            put_field(out, grid->names[line * grid->n_heads + h], ",");
        for (size_t i = 0; i < n; i++) {
            const struct grid_cell *cell =
                grid_cell(grid, line, i / grid->n_metrics, i % grid->n_metrics);
            const char *end = i + 1 < n ? "," : "\n";
            put_number(out, cell->value, grid->has_intervals ? "," : end);
            if (grid->has_intervals)
                put_number(out, cell->half_width, end);
        }
    }
}
