/* The carrier of K/V between replicas and tiers: links in virtual time (fleet/link.h), or an
 * executor that really copies it. */
#ifndef SIM_RUN_CARRIER_H
#define SIM_RUN_CARRIER_H

#include "fleet/link.h"
#include "run/flight.h"

/* The carriers of a flight, by number. */
enum { CARRIES_HANDOVERS, CARRIES_TIERS };

/* A move that the executor has told of, until the carrier that sent it takes it: the carriers of a
 * flight share one. */
struct carried {
    bool is_there;
    struct ifl_kv_moved moved;
};

struct carrier {
    struct links links;
    uint32_t number; /* among those of the flight: in the tags of moves by the executor */
    struct carried *carried;
    const struct ifl_executor_ops *executor; /* NULL: the links carry */
    void *self;
    uint32_t n_going;        /* by the executor */
    struct ifl_copy *copies; /* [n_copies] of what is sent next, where an executor copies */
    size_t n_copies, cap_copies;
};

/* The carrier of that number: n links like `spec`, for a flight with an executor that may really
 * move K/V. Tags of its loads are below 2^32. 0 or IFL_E_NOMEM. Zeroed memory is valid for
 * carrier_destroy. */
int carrier_create(struct carrier *carrier, uint32_t number, struct carried *carried,
                   const struct flight *flight, uint32_t n, const struct link_spec *spec);
void carrier_destroy(struct carrier *carrier);

/* True: what is sent names its blocks. */
static inline bool carrier_copies(const struct carrier *carrier)
{
    return carrier->executor != NULL;
}

/* What is sent next has that block, too. 0 or IFL_E_NOMEM. */
int carrier_add(struct carrier *carrier, struct ifl_copy copy);
/* from and to as in struct ifl_kv_move. */
int carrier_send(struct carrier *carrier, const struct link_load *load, int32_t from, int32_t to,
                 struct ifl_error *error);
/* 1: takes what came first by until_ns; 0: nothing has, or another carrier is to take it; negative:
 * an error. */
int carrier_take_sent(struct carrier *carrier, int64_t until_ns, struct link_arrival *arrival,
                      struct ifl_error *error);
static inline int carrier_take(struct carrier *carrier, int64_t until_ns,
                               struct link_arrival *arrival, struct ifl_error *error)
{
    return carrier->executor || links_next_ns(&carrier->links) <= until_ns
               ? carrier_take_sent(carrier, until_ns, arrival, error)
               : 0;
}
/* When to take: of links as links_next_ns says. When an executor has copied it tells by itself:
 * not before the end of time. */
static inline int64_t carrier_next_ns(const struct carrier *carrier)
{
    return carrier->n_going > 0 ? IFL_LAST_NS : links_next_ns(&carrier->links);
}

#endif
