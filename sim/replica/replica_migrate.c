/* Requests that move to another replica while they decode: each has a second record there, with
 * blocks for the K/V that comes, and runs there when all of it has arrived (run/flight_migrate.c).
 */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"

/* ---- coming ---- */

bool replica_expect(struct replica *replica, struct live_request *r, int32_t n,
                    int32_t spare_blocks, int64_t now_ns)
{
    ifl_assert(r->pub.state == IFL_WAITING && r->pub.stale.n_blocks == 0);
    const int32_t n_beside = replica_need_beside(replica, r);
    replica_stir(replica, now_ns);
    if (n + n_beside + spare_blocks > replica->kv.device.n_free ||
        !replica_take_blocks(replica, r, n))
        return false;
    waiting_leave(&replica->here.waiting, r);
    replica_take_beside(replica, r);
    r->pub.state = IFL_MOVING;
    moving_come(&replica->moving, r);
    return true;
}

bool replica_expect_more(struct replica *replica, struct live_request *r, int32_t n, int64_t now_ns)
{
    ifl_assert(r->pub.state == IFL_MOVING);
    replica_stir(replica, now_ns);
    if (!replica_take_blocks(replica, r, n))
        return false;
    moving_add_blocks(&replica->moving, n);
    return true;
}

/* What it has had before it came here. */
static void go_on(struct live_request *r, const struct live_request *from)
{
    live_go_on(r, from);
    r->pub.stale.n_tokens = from->pub.stale.n_tokens;
    r->pub.stale.n_out = from->pub.stale.n_out;
    r->pub.stale.n_computed = from->pub.stale.n_computed;
    r->pub.n_prefill = from->pub.n_prefill;
    r->pub.n_preempted = from->pub.n_preempted;
    if (from->rare->n_swap_outs > 0)
        live_own(r)->n_swap_outs = from->rare->n_swap_outs;
    r->n_promised = from->n_promised;
}

bool replica_take_waiting(struct replica *replica, struct live_request *r,
                          const struct live_request *from, int32_t n, int32_t spare_blocks,
                          int64_t now_ns)
{
    ifl_assert(from->pub.state == IFL_WAITING);
    if (!replica_expect(replica, r, n, spare_blocks, now_ns))
        return false;
    moving_end(&replica->moving, r);
    replica_count_out(replica, r);
    go_on(r, from);
    r->pub.stale.n_computed = 0;
    replica_count_in(replica, r);
    r->pub.state = IFL_LOADED;
    moving_load(&replica->moving, r);
    waiting_push_loaded(&replica->here.waiting, r);
    replica_stir_keys(replica);
    return true;
}

void replica_take_in(struct replica *replica, struct live_request *r,
                     const struct live_request *from, int64_t now_ns)
{
    ifl_assert(from->pub.state == IFL_MOVING && request_is_current(&from->pub));
    ifl_assert(from->pub.stale.n_computed == from->pub.stale.n_tokens - 1);
    replica_stir(replica, now_ns);
    moving_end(&replica->moving, r);
    replica_count_out(replica, r);
    go_on(r, from);
    replica_count_in(replica, r);
    replica_publish_prompt(replica, r, r->pub.stale.n_computed);
    r->pub.started_ns = now_ns;
    replica_run_on(replica, r);
    replica_stir_keys(replica);
}

/* ---- going ---- */

void replica_give_away(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    ifl_assert(r->pub.state == IFL_RUNNING && !replica->in_flight.busy);
    replica_stir(replica, now_ns);
    here_stop(&replica->here, r);
    replica_note_rank(replica, RANKED_RUNNING, r);
    r->pub.state = IFL_MOVING;
    moving_go(&replica->moving, r);
}
