#include "run/flight_swap.h"

#include <stdlib.h>

#include "inflight/minmax.h"

#include "run/flight_loop.h"

/* A request on its way. */
struct swap {
    struct live_request *r;
    uint32_t replica;
    bool out;
    int32_t n_blocks;
    int64_t busy_ns; /* that the replica had computed as the request was sent */
};

struct swapping {
    struct loop *loop;
    struct flight *flight;
    struct links links; /* 2i: from replica i to its host; 2i + 1: back */
    struct swap *of;    /* [slots.n] */
    struct slots slots;
    int64_t *busy_ns;      /* [replicas] of all steps that have ended */
    int64_t *free_busy_ns; /* [links] that the replica had computed as the last one came */
};

static void describe_links(struct swapping *swapping)
{
    const struct flight *flight = swapping->flight;
    for (size_t p = 0; p < flight->n_pools; p++) {
        const struct swap_link *link = &flight->swaps[p];
        const struct fleet_pool *pool = &flight->pools[p];
        for (uint32_t i = pool->first; i < pool->first + pool->n; i++) {
            links_set(&swapping->links, 2 * i, &(struct link_spec){.piece_ns = link->out_ns});
            links_set(&swapping->links, 2 * i + 1, &(struct link_spec){.piece_ns = link->in_ns});
        }
    }
}

struct swapping *swapping_create(struct loop *loop, struct ifl_error *error)
{
    struct swapping *swapping = calloc(1, sizeof *swapping);
    const uint32_t n = loop->flight->n_replicas;
    if (!swapping) {
        ifl_fail_nomem(error);
        return NULL;
    }
    *swapping = (struct swapping){
        .loop = loop,
        .flight = loop->flight,
        .busy_ns = calloc(n, sizeof *swapping->busy_ns),
        .free_busy_ns = calloc((size_t)2 * n, sizeof *swapping->free_busy_ns),
    };
    if (!swapping->busy_ns || !swapping->free_busy_ns ||
        links_create(&swapping->links, 2 * n, &(struct link_spec){0}) < 0) {
        ifl_fail_nomem(error);
        swapping_destroy(swapping);
        return NULL;
    }
    describe_links(swapping);
    return swapping;
}

void swapping_destroy(struct swapping *swapping)
{
    if (!swapping)
        return;
    links_destroy(&swapping->links);
    slots_destroy(&swapping->slots);
    free(swapping->of);
    free(swapping->busy_ns);
    free(swapping->free_busy_ns);
    free(swapping);
}

/* Time that the replica has computed until now, of the step under way included. */
static int64_t computed_ns(const struct swapping *swapping, const struct replica *replica)
{
    const struct in_flight *in_flight = &replica->in_flight;
    const int64_t now_ns = swapping->loop->now_ns;
    const int64_t of_step_ns = in_flight->busy ? now_ns - in_flight->desc.start_ns : 0;
    return swapping->busy_ns[replica->fixed.number] + of_step_ns;
}

/* ---- sending ---- */

static int send(struct swapping *swapping, const struct replica *replica, struct live_request *r,
                struct ifl_error *error)
{
    if (slots_reserve(&swapping->slots, &swapping->of, sizeof *swapping->of) < 0)
        return ifl_fail_nomem(error);
    const uint32_t slot = slots_take(&swapping->slots);
    const struct swap swap = {.r = r,
                              .replica = replica->fixed.number,
                              .out = r->swaps == SWAPS_OUT,
                              .n_blocks = r->pub.n_host_blocks,
                              .busy_ns = computed_ns(swapping, replica)};
    const struct link_load load = {.path = {2 * swap.replica + !swap.out, LINK_NONE},
                                   .n_pieces = swap.n_blocks,
                                   .at_ns = swapping->loop->now_ns,
                                   .rank = r->pub.serial,
                                   .tag = slot};
    swapping->of[slot] = swap;
    return links_send(&swapping->links, &load) < 0 ? ifl_fail_nomem(error) : 0;
}

int swapping_hear_plan(struct swapping *swapping, struct replica *replica, struct ifl_error *error)
{
    const struct moving *moving = &replica->moving;
    int rc = 0;
    for (size_t i = 0; i < moving->n_swaps && rc == 0; i++)
        rc = send(swapping, replica, moving->swaps[i], error);
    moving_clear_swaps(&replica->moving);
    return rc;
}

void swapping_hear_step(struct swapping *swapping, const struct replica *replica,
                        const struct ifl_done *done)
{
    swapping->busy_ns[replica->fixed.number] += done->end_ns - done->start_ns;
}

/* ---- what has come ---- */

int64_t swapping_next_ns(const struct swapping *swapping)
{
    return links_next_ns(&swapping->links);
}

/* Hidden is what the replica has computed since the link was free for it. */
static int record(struct swapping *swapping, const struct swap *swap,
                  const struct link_arrival *arrival, struct ifl_error *error)
{
    const struct replica *replica = &swapping->flight->replicas[swap->replica];
    const uint32_t link = 2 * swap->replica + !swap->out;
    const bool waited = arrival->begun_ns > arrival->sent_ns;
    const int64_t from_ns = waited ? swapping->free_busy_ns[link] : swap->busy_ns;
    const int32_t number = (int32_t)swap->replica, host = IFL_MOVE_TIER(TIER_HOST);
    const uint32_t pool = swapping->loop->routing.loads[swap->replica].pool;
    const double block_bytes = swapping->flight->swaps[pool].block_bytes;
    swapping->free_busy_ns[link] = computed_ns(swapping, replica);
    const struct ifl_move_record move = {
        .request_id = workload_id(swapping->flight->workload, swap->r->row, swap->r->attempt),
        .from = swap->out ? number : host,
        .to = swap->out ? host : number,
        .sent_ns = arrival->sent_ns,
        .start_ns = arrival->begun_ns,
        .end_ns = arrival->end_ns,
        .moving_ns = arrival->end_ns - arrival->begun_ns,
        .hidden_ns = swapping->free_busy_ns[link] - from_ns,
        .n_bytes = (int64_t)(block_bytes * swap->n_blocks),
        .n_blocks = swap->n_blocks,
    };
    return ifl_record_move(swapping->flight->recorder, &move, error);
}

static int end_swap(struct swapping *swapping, const struct link_arrival *arrival,
                    struct ifl_error *error)
{
    const uint32_t slot = (uint32_t)arrival->tag;
    const struct swap swap = swapping->of[slot];
    struct replica *replica = &swapping->flight->replicas[swap.replica];
    slots_give(&swapping->slots, slot);
    if (record(swapping, &swap, arrival, error) < 0)
        return error->code;
    if (swap.r->left == IFL_FINISHED)
        replica_swapped(replica, swap.r, swapping->loop->now_ns);
    else
        replica_drop_swap(replica, swap.r, swapping->loop->now_ns);
    return loop_note_gone(swapping->loop, replica, error);
}

int swapping_end(struct swapping *swapping, struct ifl_error *error)
{
    struct link_arrival arrival;
    int rc;
    while ((rc = links_take(&swapping->links, swapping->loop->now_ns, &arrival)) > 0)
        if (end_swap(swapping, &arrival, error) < 0)
            return error->code;
    return rc < 0 ? ifl_fail_nomem(error) : 0;
}

/* ---- requests that leave ---- */

int swapping_leave(struct swapping *swapping, struct replica *replica, struct live_request *r,
                   enum ifl_status status, bool *waits, struct ifl_error *error)
{
    *waits = r->pub.state == IFL_MOVING && r->swaps != SWAPS_NOT;
    if (!*waits)
        return 0;
    replica_note_gone(replica, r, status);
    return loop_report_early(swapping->loop, replica, r, error);
}
