/* Markdown as GitHub reads it. There is one line of heads, so a group's value stands in each. */
#include <string.h>

#include "tables/columns.h"
#include "typeset/text.h"

static void put_text(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (strchr("|\\*_`<", *c))
            putc('\\', out);
        putc(*c, out);
    }
}

static void put_head(const struct grid *grid)
{
    FILE *out = grid->of->out;
    for (size_t h = 0; h < grid->n_heads; h++) {
        fputs("| ", out);
        put_text(out, column_short_key(grid->keys[grid->heads[h]]));
        putc(' ', out);
    }
    for (size_t i = 0; i < grid->n_groups * grid->n_metrics; i++) {
        fputs("| ", out);
        put_text(out, head_of(&grid->metrics[i % grid->n_metrics]).text);
        if (grid->pivot != GRID_NO_KEY) {
            fputs(", ", out);
            put_text(out, column_short_key(grid->keys[grid->pivot]));
            putc(' ', out);
            put_text(out, grid->groups[i / grid->n_metrics]);
        }
        putc(' ', out);
    }
    fputs("|\n", out);
    for (size_t h = 0; h < grid->n_heads; h++)
        fputs("| --- ", out);
    for (size_t i = 0; i < grid->n_groups * grid->n_metrics; i++)
        fputs("| ---: ", out);
    fputs("|\n", out);
}

static void put_cell(const struct grid *grid, const struct grid_cell *cell)
{
    FILE *out = grid->of->out;
    const struct shown_number shown = number_shown(cell->value, cell->half_width, grid->of->digits);
    fprintf(out, cell->is_best ? "| **%s**" : "| %s", *shown.mean ? shown.mean : "-");
    if (*shown.half_width)
        fprintf(out, " ± %s", shown.half_width);
    putc(' ', out);
}

void put_markdown(const struct grid *grid)
{
    FILE *out = grid->of->out;
    put_head(grid);
    for (size_t line = 0; line < grid->n_lines; line++) {
        for (size_t h = 0; h < grid->n_heads; h++) {
            fputs("| ", out);
            put_text(out, grid->names[line * grid->n_heads + h]);
            putc(' ', out);
        }
        for (size_t i = 0; i < grid->n_groups * grid->n_metrics; i++)
            put_cell(grid, grid_cell(grid, line, i / grid->n_metrics, i % grid->n_metrics));
        fputs("|\n", out);
    }
}
