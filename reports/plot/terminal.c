/* Figures for a terminal: lines of Braille patterns (Unicode 2800 to 28FF, two by four dots a
 * letter), or bars of block elements (2588 to 258F) where no rate is swept. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "inflight/report.h"
#include "plot/series.h"
#include "tables/metric.h"

enum { WIDTH = 80, LEFT = 9, COLUMNS = WIDTH - LEFT - 2, ROWS = 16 };
enum { DOTS_X = 2 * COLUMNS, DOTS_Y = 4 * ROWS };
enum { NAME_CHARS = 34, BAR_CHARS = 34, N_LETTERS = 26 };

struct axis {
    double low, high;
    bool log;
};

struct terminal_plot {
    const struct series_set *set;
    struct metric metric;
    double *value; /* [set->n_points] in the metric's unit, NaN where there is none; owned */
    struct axis x, y;
    unsigned char dots[ROWS][COLUMNS]; /* a bit a dot */
    char letters[ROWS][COLUMNS];       /* of a point, or 0 */
};

/* ---- texts ---- */

/* A name without the escapes that gnuplot needs; `most` columns, if it is ASCII. */
static int print_name(FILE *out, const char *name, int most)
{
    int n = 0;
    for (const char *c = name; *c && n < most; n++)
        if (*c == '\\' && strlen(c) >= 4) {
            const char octal[] = {c[1], c[2], c[3], '\0'};
            putc((int)strtol(octal, NULL, 8), out);
            c += 4;
        } else {
            putc(*c++, out);
        }
    return n;
}

static void print_utf8(FILE *out, unsigned code)
{
    putc((int)(0xe0 | code >> 12), out);
    putc((int)(0x80 | (code >> 6 & 0x3f)), out);
    putc((int)(0x80 | (code & 0x3f)), out);
}

static void print_title(FILE *out, const struct metric *metric, const char *against)
{
    fprintf(out, "\n%s%s%s%s%s\n", metric->label, *metric->unit ? " (" : "", metric->unit,
            *metric->unit ? ")" : "", against);
}

/* ---- lines ---- */

static double place(const struct axis *axis, double value)
{
    return axis->log ? log(value / axis->low) / log(axis->high / axis->low)
                     : (value - axis->low) / (axis->high - axis->low);
}

static double value_at(const struct axis *axis, double frac)
{
    return axis->log ? axis->low * pow(axis->high / axis->low, frac)
                     : axis->low + frac * (axis->high - axis->low);
}

static int dot_x(const struct terminal_plot *plot, size_t point)
{
    return (int)lround(place(&plot->x, plot->set->points[point].x) * (DOTS_X - 1));
}

static int dot_y(const struct terminal_plot *plot, size_t point)
{
    return (int)lround((1 - place(&plot->y, plot->value[point])) * (DOTS_Y - 1));
}

/* Dots of a letter are numbered down its left column, then its right; the fourth row came later. */
static void set_dot(struct terminal_plot *plot, int x, int y)
{
    static const unsigned char bit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    plot->dots[y / 4][x / 2] |= bit[y % 4][x % 2];
}

static void draw_line(struct terminal_plot *plot, size_t from, size_t to)
{
    const int x0 = dot_x(plot, from), y0 = dot_y(plot, from), dx = dot_x(plot, to) - x0,
              dy = dot_y(plot, to) - y0, n = ifl_max(ifl_max(abs(dx), abs(dy)), 1);
    for (int i = 0; i <= n; i++)
        set_dot(plot, x0 + (int)lround((double)dx * i / n), y0 + (int)lround((double)dy * i / n));
}

/* Series have letters, capital ones where the point is saturated; an asterisk stands for several.
 */
static void put_letter(struct terminal_plot *plot, size_t point)
{
    const struct series_point *of = &plot->set->points[point];
    char *at = &plot->letters[dot_y(plot, point) / 4][dot_x(plot, point) / 2];
    const char letter = (char)((of->saturated ? 'A' : 'a') + of->series % N_LETTERS);
    *at = *at && *at != letter ? '*' : letter;
}

static void widen(struct axis *axis, double value)
{
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
}

/* A latency that grows by powers of ten is drawn on a logarithm. */
static void set_axes(struct terminal_plot *plot)
{
    plot->x = plot->y = (struct axis){(double)INFINITY, (double)-INFINITY, false};
    for (size_t i = 0; i < plot->set->n_points; i++)
        if (!isnan(plot->value[i])) {
            widen(&plot->x, plot->set->points[i].x);
            widen(&plot->y, plot->value[i]);
        }
    plot->y.log = plot->y.low > 0 && plot->y.high > 30 * plot->y.low;
    if (!plot->y.log)
        widen(&plot->y, 0);
    if (plot->y.high <= plot->y.low)
        plot->y.high = plot->y.low + 1;
    if (plot->x.high <= plot->x.low)
        plot->x.high = plot->x.low + 1;
}

/* In LEFT columns. */
static void print_label(FILE *out, double value)
{
    fprintf(out, "%*.*g ", LEFT - 1, fabs(value) < 99999.5 ? 4 : 2, value);
}

static void print_rows(FILE *out, const struct terminal_plot *plot)
{
    for (int row = 0; row < ROWS; row++) {
        if (row % 5 == 0)
            print_label(out, value_at(&plot->y, 1 - (double)(row * 4) / (DOTS_Y - 1)));
        else
            fprintf(out, "%*s", LEFT, "");
        putc('|', out);
        int last = COLUMNS;
        while (last > 0 && !plot->letters[row][last - 1] && !plot->dots[row][last - 1])
            last--;
        for (int column = 0; column < last; column++)
            if (plot->letters[row][column])
                putc(plot->letters[row][column], out);
            else if (plot->dots[row][column])
                print_utf8(out, 0x2800u + plot->dots[row][column]);
            else
                putc(' ', out);
        putc('\n', out);
    }
    fprintf(out, "%*s+", LEFT, "");
    for (int column = 0; column < COLUMNS; column++)
        putc('-', out);
    fprintf(out, "\n%*s%-*.4g%*.4g\n", LEFT + 1, "", COLUMNS / 2, plot->x.low,
            COLUMNS - COLUMNS / 2, plot->x.high);
}

/* Returns the number of letters of the new one. */
static int end_line(FILE *out)
{
    putc('\n', out);
    return 0;
}

static void print_legend(FILE *out, const struct terminal_plot *plot)
{
    int n_chars = 0;
    bool any_saturated = false;
    for (size_t i = 0; i < plot->set->n_points; i++)
        any_saturated |= plot->set->points[i].saturated;
    for (size_t s = 0; s < plot->set->n_series; s++) {
        const int wanted = ifl_min((int)strlen(plot->set->names[s]), WIDTH - 4) + 4;
        if (n_chars > 0 && n_chars + wanted > WIDTH)
            n_chars = end_line(out);
        n_chars += fprintf(out, "%s%c ", n_chars ? "  " : "", (int)('a' + s % N_LETTERS));
        n_chars += print_name(out, plot->set->names[s], WIDTH - 4);
    }
    fputs("\n* several", out);
    fputs(any_saturated ? ", capital: saturated\n" : "\n", out);
}

static void print_lines(FILE *out, struct terminal_plot *plot)
{
    const struct series_set *set = plot->set;
    set_axes(plot);
    for (size_t i = 1, last = 0; i < set->n_points; i++) {
        const bool goes_on =
            !isnan(plot->value[last]) && set->points[last].series == set->points[i].series;
        if (isnan(plot->value[i]))
            continue;
        if (goes_on)
            draw_line(plot, last, i);
        last = i;
    }
    for (size_t i = 0; i < set->n_points; i++)
        if (!isnan(plot->value[i]))
            put_letter(plot, i);
    print_title(out, &plot->metric, " against the arrival rate (req/s)");
    print_rows(out, plot);
    print_legend(out, plot);
}

/* ---- bars ---- */

static void print_bar(FILE *out, double frac)
{
    const int eighths = (int)lround(frac * BAR_CHARS * 8);
    for (int i = 0; i < eighths / 8; i++)
        print_utf8(out, 0x2588);
    if (eighths % 8)
        print_utf8(out, 0x2590u - (unsigned)(eighths % 8));
}

static void print_bars(FILE *out, const struct terminal_plot *plot)
{
    const struct series_set *set = plot->set;
    double most = 0;
    for (size_t i = 0; i < set->n_points; i++)
        most = fmax(most, plot->value[i]);
    print_title(out, &plot->metric, "");
    for (size_t i = 0; i < set->n_points; i++) {
        const int n = print_name(out, set->names[set->points[i].series], NAME_CHARS);
        fprintf(out, "%*s %9.4g%c ", NAME_CHARS - n, "", plot->value[i],
                set->points[i].saturated ? '*' : ' ');
        if (most > 0 && plot->value[i] > 0)
            print_bar(out, plot->value[i] / most);
        putc('\n', out);
    }
}

/* ---- the whole ---- */

static int read_values(struct terminal_plot *plot, const char *column, struct ifl_error *error)
{
    plot->value = calloc(plot->set->n_points + 1, sizeof *plot->value);
    if (!plot->value)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < plot->set->n_points; i++) {
        const struct series_point *point = &plot->set->points[i];
        const struct sheet *summary = &plot->set->runs[point->run].summary;
        size_t at;
        if (sheet_require(summary, column, &at, error) ||
            sheet_number(summary, point->row, at, &plot->value[i], error))
            return error->code;
        plot->value[i] *= plot->metric.scale;
    }
    return IFL_OK;
}

static bool any_value(const struct terminal_plot *plot)
{
    for (size_t i = 0; i < plot->set->n_points; i++)
        if (!isnan(plot->value[i]))
            return true;
    return false;
}

int ifl_plot_terminal(FILE *out, size_t n_runs, const char *const *run_dirs, const char *column,
                      struct ifl_error *error)
{
    struct series_set set;
    if (series_read(&set, n_runs, run_dirs, NULL, error))
        return error->code;
    struct terminal_plot plot = {.set = &set, .metric = metric_of(column)};
    const int code = read_values(&plot, column, error);
    if (!code && !any_value(&plot))
        fputs("nothing to plot: no request has finished\n", out);
    else if (!code && set.has_x && set.n_points > set.n_series)
        print_lines(out, &plot);
    else if (!code)
        print_bars(out, &plot);
    free(plot.value);
    series_free(&set);
    return code;
}
