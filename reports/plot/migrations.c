#include "plot/migrations.h"

#include <stdlib.h>

#include "inflight/minmax.h"

enum { POINT, REQUEST, FROM, TO, END, N_COLUMNS };
static const char *const columns[N_COLUMNS] = {"point", "request_id", "from_replica", "to_replica",
                                               "end_s"};

/* Rows from a tier, or to one, have its name in place of a replica: the request stays. */
static int take_stage(void *context, size_t series, size_t replication, const double *of,
                      struct ifl_error *error)
{
    struct migrations *migrations = (struct migrations *)context + series;
    if (replication > 0 || !(of[FROM] >= 0) || !(of[TO] >= 0))
        return IFL_OK;
    if (migrations->n == migrations->capacity) {
        const size_t capacity = ifl_max(2 * migrations->capacity, (size_t)64);
        void *more = realloc(migrations->of, capacity * sizeof *migrations->of);
        if (!more)
            return ifl_fail_nomem(error);
        migrations->of = more;
        migrations->capacity = capacity;
    }
    migrations->of[migrations->n++] = (struct migration_stage){of[REQUEST], of[END], of[FROM]};
    return IFL_OK;
}

static int by_request_and_time(const void *a, const void *b)
{
    const struct migration_stage *one = a, *other = b;
    if (one->request_id != other->request_id)
        return one->request_id < other->request_id ? -1 : 1;
    return (one->end_s > other->end_s) - (one->end_s < other->end_s);
}

int migrations_read(struct migrations *migrations, const struct plot *plot, struct ifl_error *error)
{
    const int code =
        figure_scan_sparse(plot, "moves.csv", N_COLUMNS, columns, take_stage, migrations, error);
    for (size_t series = 0; series < figure_n_curves(plot) && !code; series++)
        if (migrations[series].n > 0)
            qsort(migrations[series].of, migrations[series].n, sizeof *migrations[series].of,
                  by_request_and_time);
    return code;
}

void migrations_free(struct migrations *migrations)
{
    free(migrations->of);
    *migrations = (struct migrations){0};
}

const struct migration_stage *migrations_find(const struct migrations *migrations,
                                              double request_id, size_t *n)
{
    size_t first = 0, end = migrations->n;
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        if (migrations->of[middle].request_id < request_id)
            first = middle + 1;
        else
            end = middle;
    }
    for (end = first; end < migrations->n && migrations->of[end].request_id == request_id;)
        end++;
    *n = end - first;
    return *n ? migrations->of + first : NULL;
}
