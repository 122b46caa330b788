#include "replica/refusals.h"

#include <string.h>

void refusals_add(struct refusals *refusals, const struct refusal_count *more)
{
    size_t i = 0;
    while (i < refusals->n &&
           (refusals->of[i].by != more->by || strcmp(refusals->of[i].why, more->why) != 0))
        i++;
    if (i == REFUSALS_MOST)
        i--;
    else if (i == refusals->n)
        refusals->of[refusals->n++] = (struct refusal_count){.by = more->by, .why = more->why};
    refusals->of[i].n_rejected += more->n_rejected;
    refusals->of[i].n_failed += more->n_failed;
    refusals->of[i].n_beside += more->n_beside;
}
