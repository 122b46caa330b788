#include "replica/leaving.h"

#include <stdlib.h>

#include "base/array.h"

int leaving_reserve(struct leaving *leaving, size_t n)
{
    if (array_grow(&leaving->gone, leaving->n_gone, n, sizeof *leaving->gone) < 0)
        return IFL_E_NOMEM;
    if (array_grow(&leaving->ended, leaving->n_ended, n, sizeof *leaving->ended) < 0)
        return IFL_E_NOMEM;
    return array_grow(&leaving->early, leaving->n_early, n, sizeof *leaving->early);
}

void leaving_destroy(struct leaving *leaving)
{
    free(leaving->gone);
    free(leaving->ended);
    free(leaving->early);
}

IFL_APART IFL_APART void leaving_keep_ended(struct leaving *leaving, struct live_request *r)
{
    size_t at = leaving->n_ended++;
    for (; at > 0 && leaving->ended[at - 1]->pub.start_serial > r->pub.start_serial; at--)
        leaving->ended[at] = leaving->ended[at - 1];
    leaving->ended[at] = r;
}

IFL_APART IFL_APART void leaving_forget_early(struct leaving *leaving, struct live_request *r)
{
    size_t n = 0;
    for (size_t i = 0; i < leaving->n_early; i++)
        if (leaving->early[i] != r)
            leaving->early[n++] = leaving->early[i];
    leaving->n_early = n;
    r->stays_steps = 0;
}

IFL_APART size_t leaving_end_step(struct leaving *leaving)
{
    const size_t n_gone = leaving->n_gone;
    size_t n = 0;
    for (size_t i = 0; i < leaving->n_early; i++) {
        struct live_request *r = leaving->early[i];
        if (--r->stays_steps == 0)
            leaving_add(leaving, r);
        else
            leaving->early[n++] = r;
    }
    leaving->n_early = n;
    return leaving->n_gone - n_gone;
}
