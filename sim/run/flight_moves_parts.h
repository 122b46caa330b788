/* Structs that flight_moves.c (sends K/V) and flight_moves_leave.c (lets requests leave) share. */
#ifndef SIM_RUN_FLIGHT_MOVES_PARTS_H
#define SIM_RUN_FLIGHT_MOVES_PARTS_H

#include "run/carrier.h"
#include "run/flight_loop.h"

/* A request with two replicas. */
struct handover {
    struct arrival arrival;
    struct live_request *p, *d; /* its records at the prefill (p) and the decode replica (d); NULL:
                                   none yet, or none any more */
    uint32_t from, to;
    uint32_t n_uses; /* how often this slot has been used */
    bool computed;   /* the prompt is computed */
    bool asked;      /* the decode replica has blocks for it */
    int32_t n_flying, n_sent_blocks;
    int64_t prefilled_ns, begun_ns, loaded_ns; /* IFL_NEVER before */
    int64_t asked_ns;                          /* when the decode replica took the blocks */
    int64_t busy_ns, hidden_ns;                /* of its transfers: time in all, and time hidden
                                                  behind steps */
    int32_t n_preempted, n_swap_outs;          /* at the prefill replica */
    enum ifl_status left;                      /* how the request left while its K/V was moving */
};

/* K/V on its way. */
struct flying {
    uint32_t handover;
    int32_t n_blocks;
    int64_t n_bytes, hidden_ns;
};

struct moves {
    struct loop *loop;
    struct flight *flight;
    const struct handover_rules *rules;
    struct carrier carrier; /* link 2i leads out of replica i, link 2i + 1 into it */
    struct handover *of;    /* [slots.n]; entry 0 is not used */
    struct slots slots;
    struct flying *flying; /* [flying_slots.n] */
    struct slots flying_slots;
    struct event_heap leases; /* times at which leases end; payload: n_uses and a slot */
};

static inline struct handover *handover_of(const struct moves *moves, const struct live_request *r)
{
    ifl_assert(r->handover > 0 && r->handover < moves->slots.n);
    return &moves->of[r->handover];
}

static inline struct replica *replica_at(const struct moves *moves, uint32_t number)
{
    return &moves->flight->replicas[number];
}

#endif
