/* Texts that a table of any format is made of. */
#ifndef INFLIGHT_REPORTS_TYPESET_TEXT_H
#define INFLIGHT_REPORTS_TYPESET_TEXT_H

#include "typeset/grid.h"

struct shown_number {
    char mean[40], half_width[40]; /* empty: none; both have the same number of decimals */
};

/* The number as it is shown: with `digits` significant ones or, with an interval, as exact as two
 * digits of it. */
struct shown_number number_shown(double value, double half_width, int digits);

/* What a metric is called in a head, its unit behind it: "TTFT, p99 (s)". */
struct metric_head {
    char text[96];
};
struct metric_head head_of(const struct metric *metric);

/* ---- the formats: a function each ---- */

void put_latex(const struct grid *grid);
void put_markdown(const struct grid *grid);
void put_csv(const struct grid *grid);

#endif
