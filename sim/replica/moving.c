#include "replica/moving.h"

#include <stdlib.h>

#include "base/array.h"

int moving_reserve(struct moving *moving, size_t n)
{
    if (!moving->on)
        return 0;
    if (array_grow(&moving->handed, moving->n_handed, n, sizeof *moving->handed) < 0)
        return IFL_E_NOMEM;
    if (array_grow(&moving->swaps, moving->n_swaps, n, sizeof *moving->swaps) < 0)
        return IFL_E_NOMEM;
    return array_grow(&moving->asked, moving->n_asked, n, sizeof *moving->asked);
}

void moving_destroy(struct moving *moving)
{
    free(moving->handed);
    free(moving->asked);
    free(moving->swaps);
}

static size_t without(struct live_request **of, size_t n, const struct live_request *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (of[i] != r)
            of[kept++] = of[i];
    return kept;
}

void moving_forget(struct moving *moving, const struct live_request *r)
{
    moving->n_handed = without(moving->handed, moving->n_handed, r);
    moving->n_asked = without(moving->asked, moving->n_asked, r);
}
