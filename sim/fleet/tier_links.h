/* Links between the devices of a pool and the tiers below them (replica/tiers.h). Each replica has
 * a link from each tier and one to it. */
#ifndef SIM_FLEET_TIER_LINKS_H
#define SIM_FLEET_TIER_LINKS_H

#include "fleet/link.h"
#include "replica/kv/tier.h"

struct tier_links {
    struct link_spec spec[N_TIERS];
    int64_t block_pieces[N_TIERS]; /* pieces that a block moves in */
    double block_bytes;            /* bytes of a block, in all ranks and layers */
    int32_t n_layers;
};

#endif
