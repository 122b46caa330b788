/* How K/V comes from the tiers below a pool's devices, and goes there (replica/tiers.h). Each
 * replica has a link from each tier, and one to it. */
#ifndef SIM_FLEET_TIER_LINKS_H
#define SIM_FLEET_TIER_LINKS_H

#include "fleet/link.h"
#include "replica/kv/tier.h"

struct tier_links {
    struct link_spec spec[N_TIERS];
    int64_t block_pieces[N_TIERS]; /* that a block moves in */
    double block_bytes;            /* of all ranks and layers */
    int32_t n_layers;
};

#endif
