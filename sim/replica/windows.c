#include "replica/windows.h"

#include <stdlib.h>

int windows_create(struct windows *windows, const struct windows_rule *rule,
                   const struct kv_pool *pool)
{
    if (rule->n_groups == 0 || pool->tallied)
        return 0;
    windows->numbers = malloc((size_t)pool->n_blocks * sizeof *windows->numbers);
    return windows->numbers ? 0 : IFL_E_NOMEM;
}

void windows_destroy(struct windows *windows)
{
    free(windows->numbers);
    *windows = (struct windows){0};
}

/* Blocks without names hold nothing that a lookup finds, so that any of them may be given back. */
void windows_take(struct windows *windows, struct kv_pool *pool, struct live_request *r, int32_t n)
{
    ifl_assert(r->n_window_blocks == 0);
    kv_take(pool, n, windows->numbers ? windows->numbers + windows->n_blocks : NULL);
    windows->n_blocks += n;
    r->n_window_blocks = n;
}

void windows_drop(struct windows *windows, struct kv_pool *pool, struct live_request *r)
{
    const int32_t n = r->n_window_blocks;
    windows->n_blocks -= n;
    kv_release_plain(pool, n, windows->numbers ? windows->numbers + windows->n_blocks : NULL);
    r->n_window_blocks = 0;
}
