#include "live/source_later.h"

#include <stdlib.h>

static int widen(struct later *later)
{
    const size_t cap = later->cap ? 2 * later->cap : 256;
    struct heard *of = malloc(cap * sizeof *of);
    if (!of)
        return IFL_E_NOMEM;
    for (size_t i = 0; i < later->n; i++)
        of[i] = later->of[(later->first + i) % later->cap];
    free(later->of);
    *later = (struct later){of, 0, later->n, cap};
    return 0;
}

int later_add(struct later *later, const struct heard *heard)
{
    if (later->n == later->cap && widen(later) < 0)
        return IFL_E_NOMEM;
    later->of[(later->first + later->n++) % later->cap] = *heard;
    return 0;
}

struct heard later_take(struct later *later)
{
    ifl_assert(later->n > 0);
    const struct heard first = later->of[later->first];
    later->first = (later->first + 1) % later->cap;
    later->n--;
    return first;
}

void later_free(struct later *later)
{
    free(later->of);
    *later = (struct later){0};
}
