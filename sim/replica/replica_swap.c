/* Swaps while steps run: a victim keeps its device blocks until its K/V is in host memory, and a
 * swapped request runs once its K/V is back (run/flight_swap.c). Meanwhile it is MOVING, with
 * blocks on both sides. The numbers of its host blocks, if they have any, are stored behind those
 * of its device blocks. */
#include <string.h>

#include "inflight/minmax.h"
#include "replica/replica_parts.h"
#include "replica/step_builder.h"

static uint32_t *host_numbers(const struct live_request *r)
{
    return r->blocks ? r->blocks + r->pub.stale.n_blocks : NULL;
}

static bool reserve_both(struct live_request *r, int32_t n_device, int32_t n_host)
{
    return live_reserve_blocks(r, n_device + n_host) == 0;
}

/* ---- within a plan ---- */

bool replica_swap_out(struct replica *replica, struct live_request *r)
{
    const int32_t n = r->pub.stale.n_blocks;
    if (!reserve_both(r, n, n))
        return false;
    kv_take(&replica->kv.host, n, host_numbers(r));
    r->pub.n_host_blocks = n;
    r->pub.state = IFL_MOVING;
    r->swaps = SWAPS_OUT;
    moving_swap(&replica->moving, r);
    return true;
}

bool replica_swap_in(struct replica *replica, struct live_request *r, int32_t hold)
{
    const int32_t n_host = r->pub.n_host_blocks, n = ifl_max(hold, n_host);
    ifl_assert(r->pub.state == IFL_SWAPPED && r->pub.stale.n_blocks == 0);
    if ((replica->moving.room_awaited && moving_swaps(&replica->moving)) ||
        !kv_fits(&replica->kv.device, n) || !reserve_both(r, n, n_host))
        return false;
    memmove(r->blocks + n, r->blocks, (size_t)n_host * sizeof *r->blocks);
    step_remove_swapped(replica, r);
    ifl_require(replica_take_blocks(replica, r, n));
    replica_take_beside(replica, r);
    replica_count_back(replica, r);
    r->pub.state = IFL_MOVING;
    r->swaps = SWAPS_IN;
    moving_swap(&replica->moving, r);
    plan_count_running(&replica->plan, r);
    step_count_blocks(replica);
    replica_stir_keys(replica);
    return true;
}

bool replica_room_comes(struct replica *replica, const struct live_request *needy)
{
    const bool runs = needy->pub.state == IFL_RUNNING;
    const int32_t n_more = runs ? 1 : needy->pub.stale.n_tokens - needy->pub.stale.n_computed;
    const int32_t n_slots = replica_slots_for(replica, needy, n_more, 0);
    const int32_t n_lacking = replica_need(replica, needy, n_slots) - replica->kv.device.n_free;
    return moving_claim(&replica->moving, ifl_max(n_lacking, 0));
}

/* ---- what has come ---- */

void replica_count_back(struct replica *replica, struct live_request *r)
{
    accounts_add_tokens(&replica->kv, replica_slots(replica, r));
    accounts_add_saved(&replica->kv, replica_saved_blocks(replica, r));
    r->swapped_in = true;
    r->n_published = 0;
    r->identity = 0;
    plan_count_swapped_in(&replica->plan);
}

void replica_run_on(struct replica *replica, struct live_request *r)
{
    r->pub.state = IFL_RUNNING;
    here_start(&replica->here, r);
    replica_note_rank(replica, RANKED_RUNNING, r);
    replica_tell_started(replica, r);
}

static void release_host(struct replica *replica, struct live_request *r)
{
    kv_release(&replica->kv.host, r->pub.n_host_blocks, host_numbers(r));
    r->pub.n_host_blocks = 0;
}

static void come_to_host(struct replica *replica, struct live_request *r)
{
    const int32_t n = r->pub.stale.n_blocks;
    replica_drop_blocks(replica, r, false);
    memmove(r->blocks, r->blocks + n, (size_t)r->pub.n_host_blocks * sizeof *r->blocks);
    r->pub.state = IFL_SWAPPED;
    here_add_swapped(&replica->here, r);
    replica_note_rank(replica, RANKED_SWAPPED, r);
}

static void come_to_device(struct replica *replica, struct live_request *r)
{
    release_host(replica, r);
    replica_run_on(replica, r);
}

void replica_swapped(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    const bool out = r->swaps == SWAPS_OUT;
    replica_stir(replica, now_ns);
    moving_end_swap(&replica->moving, r);
    if (out)
        come_to_host(replica, r);
    else
        come_to_device(replica, r);
    replica_stir_keys(replica);
}

void replica_note_gone(struct replica *replica, struct live_request *r, enum ifl_status status)
{
    ifl_assert(r->pub.state == IFL_MOVING && r->left == IFL_FINISHED);
    replica_note_lost(replica, r);
    r->left = status;
}

void replica_drop_swap(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    replica_stir(replica, now_ns);
    moving_end_swap(&replica->moving, r);
    release_host(replica, r);
    replica_drop_blocks(replica, r, true);
    r->pub.state = IFL_DONE;
    leaving_add(&replica->leaving, r);
    replica_stir_keys(replica);
}
