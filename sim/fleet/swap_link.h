/* Swaps between a replica and its host: within the steps that plan them, or while steps run, over a
 * link in each direction, one swap after the other. */
#ifndef SIM_FLEET_SWAP_LINK_H
#define SIM_FLEET_SWAP_LINK_H

#include <stdint.h>

enum swap_way { SWAP_IN_STEP, SWAP_OVERLAP };

struct swap_link {
    int64_t out_ns, in_ns; /* time to copy a block to the host, and from it */
    double block_bytes;    /* bytes of a block, in all ranks and layers */
};

#endif
