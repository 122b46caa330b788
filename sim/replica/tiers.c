#include "replica/tiers.h"

#include <stdlib.h>

void tiers_destroy(struct tiers *tiers)
{
    free(tiers->asked);
    *tiers = (struct tiers){0};
}
