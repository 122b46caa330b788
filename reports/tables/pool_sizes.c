#include "tables/pool_sizes.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_REPLICAS = 1 << 22 };

static int make_room(struct pool_sizes *sizes, size_t n, struct ifl_error *error)
{
    const size_t cap = 2 * n;
    double *of = realloc(sizes->of, cap * sizeof *of);
    if (!of)
        return ifl_fail_nomem(error);
    memset(of + sizes->cap, 0, (cap - sizes->cap) * sizeof *of);
    sizes->of = of;
    sizes->cap = cap;
    return IFL_OK;
}

int pool_sizes_note(struct pool_sizes *sizes, double replica, double size, struct ifl_error *error)
{
    if (!(replica >= 0 && replica < MOST_REPLICAS))
        return IFL_OK;
    const size_t at = (size_t)replica;
    if (at >= sizes->cap && make_room(sizes, at + 1, error))
        return error->code;
    sizes->n = at < sizes->n ? sizes->n : at + 1;
    sizes->of[at] = size;
    return IFL_OK;
}

double pool_sizes_sum(const struct pool_sizes *sizes)
{
    double sum = 0;
    size_t n_known = 0;
    for (size_t i = 0; i < sizes->n; i++) {
        sum += sizes->of[i];
        n_known += sizes->of[i] > 0;
    }
    return n_known > 0 ? sum / (double)n_known * (double)sizes->n : 0;
}

void pool_sizes_free(struct pool_sizes *sizes)
{
    free(sizes->of);
    *sizes = (struct pool_sizes){0};
}
