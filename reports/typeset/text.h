/* Texts of which tables in all formats are made. */
#ifndef INFLIGHT_REPORTS_TYPESET_TEXT_H
#define INFLIGHT_REPORTS_TYPESET_TEXT_H

#include "typeset/grid.h"

struct shown_number {
    char mean[40], half_width[40]; /* empty: none; both have the same number of decimals */
};

/* Returns the number as text, with `digits` significant digits or, if there is an interval, with as
 * many decimals as two digits of the interval have. */
struct shown_number number_shown(double value, double half_width, int digits);

/* The name of a metric in a table's head, followed by its unit: "TTFT, p99 (s)". */
struct metric_head {
    char text[96];
};
struct metric_head head_of(const struct metric *metric);

/* ---- one function per format ---- */

void put_latex(const struct grid *grid);
void put_markdown(const struct grid *grid);
void put_csv(const struct grid *grid);

#endif
