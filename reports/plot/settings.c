#include "plot/settings.h"

#include <stdlib.h>
#include <string.h>

#include "tables/metric.h"

static bool is_set(const struct ifl_plot_axis *axis)
{
    return axis->has_range || axis->scale != IFL_SCALE_USUAL;
}

bool settings_of_axes(const struct ifl_plot_options *options)
{
    return is_set(&options->x_axis) || is_set(&options->y_axis);
}

/* A text of gnuplot in single quotes: in it a quote is doubled, and nothing else means anything. */
static void put_text(FILE *to, const char *name, const char *before, const char *text,
                     const char *behind)
{
    fprintf(to, "%s = '%s", name, before);
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            putc('\'', to);
        putc((unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c, to);
    }
    fprintf(to, "%s'; ", behind);
}

static void put_axis(FILE *to, char name, const struct ifl_plot_axis *axis)
{
    static const char *const scales[] = {NULL, "linear", "log"};
    if (axis->scale != IFL_SCALE_USUAL)
        fprintf(to, "%c_scale = '%s'; ", name, scales[axis->scale]);
    if (axis->has_range)
        fprintf(to, "%c_low = real(%.17g); %c_high = real(%.17g); ", name, axis->low, name,
                axis->high);
}

/* Figures have the numbers as they stand in their CSV, in seconds and as shares. */
static void put_column(FILE *to, const struct series_set *set, const char *column)
{
    const struct metric metric = metric_of(column);
    const char *label = series_label(set, column), *unit = metric_unit_in_files(&metric);
    char text[256];
    snprintf(text, sizeof text, "%s%s%s%s", metric.label, *unit ? " (" : "", unit,
             *unit ? ")" : "");
    put_text(to, "y_label", "", label == column ? text : label, "");
    if (metric_is_latency(&metric))
        fputs("y_usual = 'log'; ", to);
}

static bool is_from_factor(const struct series_set *set)
{
    bool any = false;
    for (size_t i = 0; i < set->n_runs; i++)
        any |= set->runs[i].rate_rps != NULL;
    return any;
}

static void put_all(FILE *to, const struct plot *plot, bool of_axes)
{
    const struct series_set *set = plot->set;
    const char *label = series_label(set, set->x_name);
    if (set->has_x && !set->is_rate) {
        put_text(to, "x_label", "", label, "");
        put_text(to, "at_before", ", at ", label, " ");
        put_text(to, "at_behind", "", "", "");
    } else if (set->has_x && label != set->x_name) {
        put_text(to, "x_label", "", label, "");
    }
    if (set->has_x && is_from_factor(set))
        fputs("at_digits = '%.4g'; ", to);
    if (plot->y)
        put_column(to, set, plot->y);
    if (of_axes) {
        put_axis(to, 'x', &plot->options->x_axis);
        put_axis(to, 'y', &plot->options->y_axis);
    }
    if (plot->options->drawing.latex)
        fputs("formats = 'pdf svg png tex'; ", to);
}

int settings_make(const struct plot *plot, bool of_axes, char **settings, struct ifl_error *error)
{
    size_t n_bytes;
    *settings = NULL;
    FILE *to = open_memstream(settings, &n_bytes);
    if (!to)
        return ifl_fail_nomem(error);
    put_all(to, plot, of_axes);
    if (fclose(to) != 0) {
        free(*settings);
        *settings = NULL;
        return ifl_fail_nomem(error);
    }
    if (n_bytes == 0) {
        free(*settings);
        *settings = NULL;
    }
    return IFL_OK;
}
