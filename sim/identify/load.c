#include "identify/load.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

/* A sweep over the spans by their starts. */
struct sweep {
    const double *from_s, *to_s;
    size_t *order; /* [n] spans that are not empty, by start */
    size_t n;
    size_t *running; /* [n_running] those before the sweep that end behind it */
    size_t n_running;
    size_t *over; /* scratch */
};

static int open_sweep(struct sweep *sweep, size_t n, struct ifl_error *error)
{
    const size_t n_bytes = (n + 1) * sizeof(size_t);
    sweep->order = malloc(n_bytes);
    sweep->running = malloc(n_bytes);
    sweep->over = malloc(n_bytes);
    return sweep->order && sweep->running && sweep->over ? 0 : ifl_fail_nomem(error);
}

static void close_sweep(struct sweep *sweep)
{
    free(sweep->order);
    free(sweep->running);
    free(sweep->over);
}

static int by_number(const void *left, const void *right)
{
    const size_t a = *(const size_t *)left, b = *(const size_t *)right;
    return a < b ? -1 : a > b;
}

/* Empty spans last: they start at the end of time. */
static int sort(struct sweep *sweep, size_t n, struct ifl_error *error)
{
    double *start_s = calloc(n + 1, sizeof *start_s);
    if (!start_s)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < n; i++) {
        const bool is_empty = !(sweep->to_s[i] > sweep->from_s[i]);
        start_s[i] = is_empty ? INFINITY : sweep->from_s[i];
        sweep->n += !is_empty;
    }
    gsl_sort_index(sweep->order, start_s, 1, n);
    free(start_s);
    return 0;
}

/* The spans over the k-th one. They are summed by their numbers, so that the sum does not depend on
 * how they were found. */
static double load_of(struct sweep *sweep, size_t k)
{
    const size_t own = sweep->order[k];
    const double from_s = sweep->from_s[own], to_s = sweep->to_s[own];
    double overlap_s = 0;
    size_t kept = 0, n = 0;
    for (size_t i = 0; i < sweep->n_running; i++)
        if (sweep->to_s[sweep->running[i]] > from_s)
            sweep->over[n++] = sweep->running[kept++] = sweep->running[i];
    for (size_t i = k; i < sweep->n && sweep->from_s[sweep->order[i]] < to_s; i++)
        sweep->over[n++] = sweep->order[i];
    sweep->running[kept] = own;
    sweep->n_running = kept + 1;
    qsort(sweep->over, n, sizeof *sweep->over, by_number);
    for (size_t i = 0; i < n; i++)
        overlap_s +=
            fmin(to_s, sweep->to_s[sweep->over[i]]) - fmax(from_s, sweep->from_s[sweep->over[i]]);
    return overlap_s / (to_s - from_s);
}

int load_over(const double from_s[], const double to_s[], size_t n, double load[],
              struct ifl_error *error)
{
    struct sweep sweep = {.from_s = from_s, .to_s = to_s};
    int rc = open_sweep(&sweep, n, error);
    if (rc == 0)
        rc = sort(&sweep, n, error);
    for (size_t i = 0; rc == 0 && i < n; i++)
        load[i] = 1;
    for (size_t k = 0; rc == 0 && k < sweep.n; k++)
        load[sweep.order[k]] = load_of(&sweep, k);
    close_sweep(&sweep);
    return rc;
}
