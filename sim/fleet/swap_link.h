/* Swaps between a replica and its host: within the steps that plan them, or beside steps, over a
 * link in each direction on which they go one after the other. */
#ifndef SIM_FLEET_SWAP_LINK_H
#define SIM_FLEET_SWAP_LINK_H

#include <stdint.h>

enum swap_way { SWAP_IN_STEP, SWAP_OVERLAP };

struct swap_link {
    int64_t out_ns, in_ns; /* of a block, to the host and from it */
    double block_bytes;    /* of all ranks and layers */
};

#endif
