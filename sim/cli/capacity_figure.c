#include "cli/capacity_figure.h"

#include <stdio.h>

#include "base/data.h"
#include "cli/capacity_cells.h"
#include "cli/options.h"

int capacity_figure_open(struct capacity_figure *figure, const char *dir, const char *name,
                         const char *column, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    *figure = (struct capacity_figure){.dir = dir, .name = name};
    snprintf(path, sizeof path, "%s/%s.csv", dir, name);
    if (new_file_open(&figure->file, path, error) < 0)
        return error->code;
    fprintf(figure->file.out,
            "number,series,status,%s,%s_low,%s_high,replicas,gpus_per_replica,cheapest,unit\n",
            column, column, column);
    return 0;
}

void capacity_figure_put(struct capacity_figure *figure, const struct study *study, size_t i,
                         const struct capacity_bar *bar)
{
    char name[256];
    FILE *out = figure->file.out;
    cell_name(study, i, " / ", name, sizeof name);
    fprintf(out, "%zu,", i + 1);
    cell_text(out, name);
    fprintf(out, "%s,", bar->status);
    cell_real(out, bar->value);
    cell_real(out, bar->low);
    cell_real(out, bar->high);
    cell_count(out, bar->replicas);
    cell_count(out, bar->n_gpus);
    fprintf(out, "%s,%s\n", cell_flag(bar->cheapest), bar->unit);
}

int capacity_figure_draw(struct capacity_figure *figure, const char *note, struct ifl_error *error)
{
    char script_dir[512];
    if (new_file_close(&figure->file, 0, error) < 0 || data_plot_scripts(script_dir, error) < 0)
        return error->code;
    const struct ifl_drawing drawing = {.out_dir = figure->dir,
                                        .script_dir = script_dir,
                                        .columns = 1,
                                        .note = note,
                                        .source = "inflight " INFLIGHT_VERSION};
    return ifl_figure(&drawing, "plan", figure->name, error);
}
