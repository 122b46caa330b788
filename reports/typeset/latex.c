/* LaTeX with the rules of the package booktabs. */
#include <string.h>

#include "tables/columns.h"
#include "typeset/text.h"

static void put_text(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++)
        if (strchr("&%$#_{}", *c))
            fprintf(out, "\\%c", *c);
        else if (*c == '\\')
            fputs("\\textbackslash{}", out);
        else if (*c == '~' || *c == '^')
            fprintf(out, "\\%c{}", *c);
        else
            putc(*c, out);
}

/* A name above the columns of each value. */
static void put_groups(const struct grid *grid)
{
    FILE *out = grid->of->out;
    const int n = (int)grid->n_metrics;
    if (grid->pivot == GRID_NO_KEY)
        return;
    for (size_t h = 1; h < grid->n_heads; h++)
        fputs("& ", out);
    for (size_t g = 0; g < grid->n_groups; g++) {
        fprintf(out, " & \\multicolumn{%d}{c}{", n);
        put_text(out, column_short_key(grid->keys[grid->pivot]));
        putc(' ', out);
        put_text(out, grid->groups[g]);
        putc('}', out);
    }
    fputs(" \\\\\n", out);
    for (size_t g = 0; g < grid->n_groups; g++) {
        const int from = (int)grid->n_heads + 1 + (int)g * n;
        fprintf(out, "\\cmidrule(lr){%d-%d}%s", from, from + n - 1,
                g + 1 < grid->n_groups ? " " : "\n");
    }
}

static void put_head(const struct grid *grid)
{
    FILE *out = grid->of->out;
    for (size_t h = 0; h < grid->n_heads; h++) {
        fputs(h ? " & " : "", out);
        put_text(out, column_short_key(grid->keys[grid->heads[h]]));
    }
    for (size_t i = 0; i < grid->n_groups * grid->n_metrics; i++) {
        fputs(i || grid->n_heads ? " & " : "", out);
        put_text(out, head_of(&grid->metrics[i % grid->n_metrics]).text);
    }
    fputs(" \\\\\n\\midrule\n", out);
}

static void put_cell(const struct grid *grid, const struct grid_cell *cell)
{
    FILE *out = grid->of->out;
    const struct shown_number shown = number_shown(cell->value, cell->half_width, grid->of->digits);
    fprintf(out, cell->is_best ? "\\textbf{%s}" : "%s", *shown.mean ? shown.mean : "--");
    if (*shown.half_width)
        fprintf(out, " $\\pm$ %s", shown.half_width);
}

static void put_line(const struct grid *grid, size_t line)
{
    FILE *out = grid->of->out;
    for (size_t h = 0; h < grid->n_heads; h++) {
        fputs(h ? " & " : "", out);
        put_text(out, grid->names[line * grid->n_heads + h]);
    }
    for (size_t i = 0; i < grid->n_groups * grid->n_metrics; i++) {
        fputs(i || grid->n_heads ? " & " : "", out);
        put_cell(grid, grid_cell(grid, line, i / grid->n_metrics, i % grid->n_metrics));
    }
    fputs(" \\\\\n", out);
}

void put_latex(const struct grid *grid)
{
    FILE *out = grid->of->out;
    fputs("% \\usepackage{booktabs}\n", out);
    if (grid->has_intervals)
        fputs("% +-: half the width of the 95% interval of a mean over replications\n", out);
    fputs("\\begin{tabular}{", out);
    for (size_t h = 0; h < grid->n_heads; h++)
        putc('l', out);
    for (size_t i = 0; i < grid->n_groups * grid->n_metrics; i++)
        putc('r', out);
    fputs("}\n\\toprule\n", out);
    put_groups(grid);
    put_head(grid);
    for (size_t line = 0; line < grid->n_lines; line++)
        put_line(grid, line);
    fputs("\\bottomrule\n\\end{tabular}\n", out);
}
