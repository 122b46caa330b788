/* The carrier of K/V between replicas and tiers: links in virtual time (fleet/link.h), or an
 * executor that really copies it. */
#ifndef SIM_RUN_CARRIER_H
#define SIM_RUN_CARRIER_H

#include "fleet/link.h"
#include "run/flight.h"

/* The carriers of a flight, by number. */
enum { CARRIES_HANDOVERS, CARRIES_TIERS };

/* A move that the executor has reported, kept until the carrier that sent it takes it. The carriers
 * of a flight share one such place. */
struct carried {
    bool is_there;
    struct ifl_kv_moved moved;
};

struct carrier {
    struct links links;
    uint32_t number; /* number among the carriers of the flight; part of the tags of moves by the
                        executor */
    struct carried *carried;
    const struct ifl_executor_ops *executor; /* NULL: the links carry the K/V */
    void *self;
    uint32_t n_going;        /* moves under way at the executor */
    struct ifl_copy *copies; /* [n_copies] blocks of the next load, if the executor copies K/V */
    size_t n_copies, cap_copies;
};

/* Creates the carrier of that number: n links like `spec`, for a flight with an executor that may
 * really move K/V. Tags of its loads must be below 2^32. Returns 0 or IFL_E_NOMEM. Zeroed memory is
 * valid for carrier_destroy. */
int carrier_create(struct carrier *carrier, uint32_t number, struct carried *carried,
                   const struct flight *flight, uint32_t n, const struct link_spec *spec);
void carrier_destroy(struct carrier *carrier);

/* True if loads must name their blocks (carrier_add). */
static inline bool carrier_copies(const struct carrier *carrier)
{
    return carrier->executor != NULL;
}

/* Adds a block to the next load. Returns 0 or IFL_E_NOMEM. */
int carrier_add(struct carrier *carrier, struct ifl_copy copy);
/* Sends the load; from and to are as in struct ifl_kv_move. */
int carrier_send(struct carrier *carrier, const struct link_load *load, int32_t from, int32_t to,
                 struct ifl_error *error);
/* Takes the load that came first by until_ns. Returns 1 if there is one; 0 if none has come, or if
 * another carrier is to take it; or a negative code. */
int carrier_take_sent(struct carrier *carrier, int64_t until_ns, struct link_arrival *arrival,
                      struct ifl_error *error);
static inline int carrier_take(struct carrier *carrier, int64_t until_ns,
                               struct link_arrival *arrival, struct ifl_error *error)
{
    return carrier->executor || links_next_ns(&carrier->links) <= until_ns
               ? carrier_take_sent(carrier, until_ns, arrival, error)
               : 0;
}
/* Time at which carrier_take is to be called. Links: links_next_ns. An executor reports ends by
 * itself: the end of time while moves are under way. */
static inline int64_t carrier_next_ns(const struct carrier *carrier)
{
    return carrier->n_going > 0 ? IFL_LAST_NS : links_next_ns(&carrier->links);
}

#endif
