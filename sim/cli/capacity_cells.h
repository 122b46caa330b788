/* Cells that the reports of inflight capacity share. */
#ifndef SIM_CLI_CAPACITY_CELLS_H
#define SIM_CLI_CAPACITY_CELLS_H

#include <stdio.h>

#include "run/capacity.h"

extern const char *const capacity_status_names[];
/* The status of a deployment; "failed" if its search ended with an error. */
const char *cell_status(const struct ifl_error *error, enum capacity_status status);

/* ---- CSV: each is followed by a comma ---- */

void cell_text(FILE *out, const char *text);
void cell_real(FILE *out, double x);   /* empty for NaN */
void cell_count(FILE *out, int32_t n); /* empty for 0 and less */
void cell_interval(FILE *out, const struct ifl_interval *of);
const char *cell_flag(bool set);

/* The swept keys except the replication, which is no key of a deployment. */
size_t cell_n_keys(const struct study *study);
void cell_keys(FILE *out, const struct study *study);
void cell_values(FILE *out, const struct study *study, size_t row);
/* "tensor 2 / dtype fp8", the separator as given; "it" if nothing is swept. */
void cell_name(const struct study *study, size_t row, const char *separator, char *text,
               size_t n_bytes);
bool cells_have_members(const struct study *study);

/* Writes NAME,NAME_ci95, for each objective of the study's first deployment, except those in
 * `known`, a list of columns. */
void cell_objective_names(FILE *out, const struct study *study, const char *known);
/* Writes the values of these columns for a trial with these objectives; a cell is empty if the
 * trial has no such objective. `of` NULL: all cells are empty. */
void cell_objectives(FILE *out, const struct study *study, const char *known,
                     const struct objective *objectives, size_t n,
                     const struct objective_trial *of);
/* "p95_ttft_s+p99_tbt_s", or "" for none. */
void capacity_name_binding(const struct capacity *found, char *text, size_t n_bytes);

/* ---- tables ---- */

const char *cell_short_key(const struct study *study, size_t axis);
int cell_widest(const struct study *study, size_t axis, size_t n);  /* of n rows, at most 40 */
void cell_print_real(FILE *out, int width, int decimals, double x); /* "-" for NaN */
void cell_print_keys(FILE *out, const struct study *study, size_t n);
/* Prints "  failed: ..." and a line feed: what is wrong, without the arithmetic after a colon. */
void capacity_print_failure(FILE *out, const struct ifl_error *error);
void cell_print_values(FILE *out, const struct study *study, size_t n, size_t row);

#endif
