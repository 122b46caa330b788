#include "replica/here.h"

#include <stdlib.h>

#include "base/array.h"

int here_create(struct here *here, struct kv_block block, size_t parts_bytes,
                void (*refresh)(const struct ifl_ticks *ticks, const struct ifl_request *r))
{
    live_pool_init(&here->pool, parts_bytes);
    waiting_draw_from(&here->waiting, &here->pool);
    waiting_set_block(&here->waiting, block);
    const int rc = cohort_create(&here->cohort, block);
    cohort_set_refresh(&here->cohort, refresh);
    return rc;
}

void here_destroy(struct here *here)
{
    free(here->swapped);
    waiting_destroy(&here->waiting);
    cohort_destroy(&here->cohort);
    live_pool_finish(&here->pool);
}

IFL_APART int here_reserve(struct here *here, size_t n)
{
    if (array_grow(&here->swapped, here->n_swapped, n, sizeof *here->swapped) < 0 ||
        waiting_reserve(&here->waiting, n) < 0 || cohort_reserve(&here->cohort, n) < 0)
        return IFL_E_NOMEM;
    here->cap = n / 2;
    return 0;
}

void here_add_swapped(struct here *here, struct live_request *r)
{
    live_own(r)->swapped_at = here->n_swapped;
    here->swapped[here->n_swapped++] = r;
}

void here_remove_swapped(struct here *here, struct live_request *r)
{
    ifl_assert(here->n_swapped > 0 && here->swapped[r->rare->swapped_at] == r);
    struct live_request *last = here->swapped[--here->n_swapped];
    here->swapped[r->rare->swapped_at] = last;
    live_own(last)->swapped_at = r->rare->swapped_at;
}
