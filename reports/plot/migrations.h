/* Reads from moves.csv at which replica each request was that moved while it ran. */
#ifndef INFLIGHT_REPORTS_PLOT_MIGRATIONS_H
#define INFLIGHT_REPORTS_PLOT_MIGRATIONS_H

#include <stddef.h>

#include "plot/figures.h"

/* A row of moves.csv. The request may have stayed. */
struct migration_stage {
    double request_id, end_s;
    double from_replica;
};

/* The migrations of a series. Zeroed memory is valid and has none. */
struct migrations {
    struct migration_stage *of; /* [n] by request, in the order of time */
    size_t n, capacity;
};

/* Fills migrations[figure_n_curves] from the runs that have moves.csv. */
int migrations_read(struct migrations *migrations, const struct plot *plot,
                    struct ifl_error *error);
void migrations_free(struct migrations *migrations);

/* Returns the stages of the request; *n is their number. */
const struct migration_stage *migrations_find(const struct migrations *migrations,
                                              double request_id, size_t *n);

#endif
