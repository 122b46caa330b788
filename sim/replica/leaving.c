#include "replica/leaving.h"

#include <stdlib.h>

#include "base/array.h"

int leaving_reserve(struct leaving *leaving, size_t n)
{
    if (array_grow(&leaving->gone, leaving->n_gone, n, sizeof *leaving->gone) < 0)
        return IFL_E_NOMEM;
    return array_grow(&leaving->ended, leaving->n_ended, n, sizeof *leaving->ended);
}

void leaving_destroy(struct leaving *leaving)
{
    free(leaving->gone);
    free(leaving->ended);
}

void leaving_keep_ended(struct leaving *leaving, struct live_request *r)
{
    size_t at = leaving->n_ended++;
    for (; at > 0 && leaving->ended[at - 1]->pub.start_serial > r->pub.start_serial; at--)
        leaving->ended[at] = leaving->ended[at - 1];
    leaving->ended[at] = r;
}
