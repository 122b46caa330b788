/* Links over which K/V moves: out of a replica and into one, or between a replica and its host, its
 * disk or a store.
 *
 * A transfer takes latency + pieces x piece time + bytes / rate. It occupies the link for all this
 * time except the latency. A transfer may pass two links, out of one replica and into another. Its
 * rate is then that of the slower link; its latency and piece time are the longer of the two.
 * `sharing` says how simultaneous transfers share a link:
 *
 *   fifo      one after the other, in the order in which they were sent (a NIC's queue)
 *   shared    each transfer has an equal part of the rate at any time (processor sharing; Dynamo's
 *             mocker, bandwidth_sharing_model.rs, 1.6.1)
 *   frozen    each transfer keeps the part that it had when it was sent: the rate over the number
 *             of transfers that were sent and have not come, those in their latency included (BLIS
 *             f90a1e3, pd_events.go: activeTransfers falls with KVTransferCompletedEvent)
 *   unshared  each transfer has the whole rate (splitwise-sim 8f99e7d, DummyLink)
 *
 * On fifo, frozen and unshared links the end of a transfer is known when it is sent. Memory is
 * allocated by links_create, and by a send if more transfers are under way than ever before. */
#ifndef SIM_FLEET_LINK_H
#define SIM_FLEET_LINK_H

#include "base/event_heap.h"
#include "base/slots.h"
#include "inflight/assert.h"

enum link_sharing { LINK_FIFO, LINK_SHARED, LINK_FROZEN, LINK_UNSHARED };

struct link_spec {
    int64_t latency_ns; /* time until the first byte arrives; the link is free meanwhile */
    double bytes_per_s; /* 0: bytes take no time */
    int64_t piece_ns;   /* time per piece of a transfer, in addition to its bytes */
    enum link_sharing sharing;
};

#define LINK_NONE UINT32_MAX
enum { LINKS_OF_A_PATH = 2 };

struct link {
    struct link_spec spec;
    int64_t free_ns;  /* fifo: when all transfers sent so far have passed */
    uint32_t n_going; /* frozen, shared: transfers under way */
    uint32_t first;   /* shared: first entry of the list of these transfers, LINK_NONE at its end */
};

struct link_transfer;

struct links {
    struct link *of; /* [n] */
    uint32_t n;
    struct link_transfer *transfers; /* [slots.n] */
    struct slots slots;
    struct event_heap ends;
};

/* A transfer to be sent. */
struct link_load {
    uint32_t path[LINKS_OF_A_PATH]; /* links below n, of one sharing; the second may be LINK_NONE */
    int64_t n_bytes, n_pieces;
    int64_t at_ns; /* when it is sent; not before the time of any earlier call */
    uint64_t rank; /* of transfers that end at the same time the one with the lowest rank is taken
                      first */
    uint64_t tag;  /* for the caller's own use */
    double passed; /* share of its bytes and pieces that takes no time, because it moves during a
                      step */
};

/* A transfer that has arrived. */
struct link_arrival {
    int64_t sent_ns, begun_ns, end_ns; /* begun: when the link was free for the transfer */
    int64_t alone_ns;                  /* duration if no other transfer were in its way */
    uint64_t tag;
};

/* links_create: n links as `spec` says; returns 0 or IFL_E_NOMEM. links_set changes one link before
 * anything is sent. Zeroed memory is valid for links_destroy. */
int links_create(struct links *links, uint32_t n, const struct link_spec *spec);
void links_set(struct links *links, uint32_t i, const struct link_spec *spec);
void links_destroy(struct links *links);

/* Sends a transfer. Returns 0 or IFL_E_NOMEM. */
int links_send(struct links *links, const struct link_load *load);
/* Returns when links_take is to be called: a transfer arrives then, or the rates of shared links
 * change. IFL_NEVER: no transfer is under way. */
static inline int64_t links_next_ns(const struct links *links)
{
    return event_next_ns(&links->ends);
}
/* Takes the transfer that arrived first by until_ns. Returns 1 if there is one, 0 if none has
 * arrived, or IFL_E_NOMEM. */
int links_take(struct links *links, int64_t until_ns, struct link_arrival *arrival);
/* Duration of a transfer that meets no other one, latency included. */
int64_t links_alone_ns(const struct links *links, const struct link_load *load);
/* As links_alone_ns, without the latency. */
int64_t links_busy_ns(const struct links *links, const struct link_load *load);

#endif
