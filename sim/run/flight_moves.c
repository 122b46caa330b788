#include "run/flight_moves.h"

#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"
#include "inflight/random.h"

#include "base/array.h"
#include "run/flight_moves_parts.h"

struct moves *moves_create(struct loop *loop, struct ifl_error *error)
{
    struct moves *moves = calloc(1, sizeof *moves);
    struct flight *flight = loop->flight;
    if (!moves) {
        ifl_fail_nomem(error);
        return NULL;
    }
    *moves = (struct moves){.loop = loop, .flight = flight, .rules = flight->handover};
    if (slots_reserve(&moves->slots, &moves->of, sizeof *moves->of) < 0 ||
        carrier_create(&moves->carrier, CARRIES_HANDOVERS, &loop->carried, flight,
                       2 * flight->n_replicas, &flight->link) < 0) {
        ifl_fail_nomem(error);
        moves_destroy(moves);
        return NULL;
    }
    ifl_require(slots_take(&moves->slots) == 0); /* stands for none */
    return moves;
}

void moves_destroy(struct moves *moves)
{
    if (!moves)
        return;
    carrier_destroy(&moves->carrier);
    slots_destroy(&moves->slots);
    slots_destroy(&moves->flying_slots);
    free(moves->of);
    free(moves->flying);
    event_heap_destroy(&moves->leases);
    free(moves);
}

/* ---- the two records ---- */

static int join(struct moves *moves, uint32_t number, const struct arrival *a, int64_t now_ns,
                struct live_request **r, struct ifl_error *error)
{
    struct replica *replica = replica_at(moves, number);
    if (replica_join(replica, a, now_ns, r, error) < 0)
        return error->code;
    if (IFL_RARE(replica->tiers.prefetches) &&
        tiering_hear_join(moves->loop->tiering, replica, *r, error) < 0)
        return error->code;
    loop_note_change(moves->loop, replica);
    return 0;
}

/* The decode replica gets the request. For its server it arrives now. */
static int join_decode(struct moves *moves, uint32_t slot, int64_t now_ns, struct ifl_error *error)
{
    struct handover *h = &moves->of[slot];
    struct arrival a = h->arrival;
    a.at_ns = now_ns;
    a.hands_over = HANDS_NOTHING;
    a.n_below = a.n_prompt;
    a.answers_on_arrival = moves->rules->first_token == TOKEN_ON_ARRIVAL;
    a.answered_elsewhere = !h->computed && moves->rules->first_token == TOKEN_OF_PREFILL;
    a.goes_on = h->computed ? h->p : NULL;
    if (join(moves, h->to, &a, now_ns, &h->d, error) < 0)
        return error->code;
    h->d->prompt_at = h->computed ? NULL : h->p;
    return 0;
}

/* True if the client has all that it asked for from the prefill replica. */
static bool ends_there(const struct moves *moves, const struct arrival *a)
{
    return moves->rules->first_token == TOKEN_OF_PREFILL && a->n_output == 1;
}

IFL_APART int moves_send(struct moves *moves, uint32_t prefill, uint32_t decode,
                         const struct arrival *a, int64_t now_ns, struct ifl_error *error)
{
    struct loop *loop = moves->loop;
    enum ifl_status as;
    if (slots_reserve(&moves->slots, &moves->of, sizeof *moves->of) < 0)
        return ifl_fail_nomem(error);
    const uint32_t slot = slots_take(&moves->slots);
    struct handover *h = &moves->of[slot];
    *h = (struct handover){.arrival = *a,
                           .from = prefill,
                           .to = decode,
                           .n_uses = h->n_uses,
                           .prefilled_ns = IFL_NEVER,
                           .begun_ns = IFL_NEVER,
                           .loaded_ns = IFL_NEVER};
    h->arrival.handover = slot;
    h->arrival.hands_over =
        moves->rules->first_token == TOKEN_OF_PREFILL ? HANDS_PROMPT_AND_TOKEN : HANDS_PROMPT;
    if (ends_there(moves, a))
        h->arrival.hands_over = HANDS_NOTHING;
    routing_note_sent(&loop->routing, prefill);
    int rc = join(moves, prefill, &h->arrival, now_ns, &h->p, error);
    if (rc == 0 && (loop->places || arrival_leaves_ns(a, &as) != IFL_NEVER))
        rc = loop_note_departure(loop, a, prefill, h->p, error);
    if (rc == 0 && moves->rules->order == HANDOVER_PUSH && !ends_there(moves, a)) {
        routing_note_handed_over(&loop->routing, decode);
        rc = join_decode(moves, slot, now_ns, error);
    }
    routing_tell_sent(&loop->routing, a, prefill, now_ns);
    return rc;
}

/* ---- sending K/V ---- */

/* The part of a transfer that has passed when the step which has computed its K/V ends, where each
 * layer was sent as soon as it was there and had blocks, which the decode replica took at A in the
 * step: of T + x / L and max(T / L, A) + x the later, less T, is left, and the latency, which
 * follows the last byte. */
static double passed_by_layer(const struct moves *moves, const struct handover *h,
                              const struct ifl_done *step, int64_t busy_ns)
{
    const double n = moves->flight->moved.n_layers, x = (double)busy_ns;
    const double t = (double)(step->end_ns - step->start_ns);
    const double a = (double)ifl_max(h->asked_ns - step->start_ns, 0);
    const double left = fmax(x / n, x + fmax(t / n, a) - t);
    return x > 0 ? 1 - left / x : 0;
}

/* The next n blocks of the prompt, behind those that its decode replica has or that were sent: the
 * same place in the tables of both. */
static int list_blocks(struct moves *moves, const struct handover *h, int32_t n)
{
    const int32_t n_hit = replica_full_blocks(replica_at(moves, h->to), h->d->pub.stale.n_computed);
    int rc = 0;
    for (int32_t i = n_hit + h->n_sent_blocks; n-- > 0 && rc == 0; i++)
        rc = carrier_add(&moves->carrier,
                         (struct ifl_copy){live_block(h->p, i), live_block(h->d, i)});
    return rc;
}

/* Sends that many blocks, and more_bytes. step: what has computed the last of them, where they went
 * layer by layer beside it; else NULL. */
static int send_blocks(struct moves *moves, uint32_t slot, int32_t n_blocks, double more_bytes,
                       const struct ifl_done *step, struct ifl_error *error)
{
    struct handover *h = &moves->of[slot];
    const struct ifl_limits *limits = &replica_at(moves, h->to)->fixed.limits;
    const double bytes =
        moves->flight->moved.token_bytes * limits->block_tokens * n_blocks + more_bytes;
    struct link_load load = {.path = {2 * h->from, 2 * h->to + 1},
                             .n_bytes = (int64_t)bytes,
                             .n_pieces = ifl_max(n_blocks * moves->flight->moved.block_pieces, 1),
                             .at_ns = moves->loop->now_ns,
                             .rank = h->arrival.serial};
    if (slots_reserve(&moves->flying_slots, &moves->flying, sizeof *moves->flying) < 0 ||
        (carrier_copies(&moves->carrier) && list_blocks(moves, h, n_blocks) < 0))
        return ifl_fail_nomem(error);
    const uint32_t tag = slots_take(&moves->flying_slots);
    moves->flying[tag] =
        (struct flying){.handover = slot, .n_blocks = n_blocks, .n_bytes = load.n_bytes};
    if (step && !carrier_copies(&moves->carrier)) { /* copies begin behind the step */
        const int64_t busy_ns = links_busy_ns(&moves->carrier.links, &load);
        load.passed = passed_by_layer(moves, h, step, busy_ns);
        moves->flying[tag].hidden_ns = busy_ns - links_busy_ns(&moves->carrier.links, &load);
    }
    load.tag = tag;
    h->n_flying++;
    h->n_sent_blocks += n_blocks;
    return carrier_send(&moves->carrier, &load, (int32_t)h->from, (int32_t)h->to, error);
}

/* What is computed and has not been sent; all of the prompt if it is done. Blocks that the decode
 * replica has found in its cache stay where they are. */
static int32_t blocks_to_send(const struct moves *moves, const struct handover *h,
                              int32_t n_computed)
{
    const struct replica *to = replica_at(moves, h->to);
    const int32_t n_hit = replica_full_blocks(to, h->d->pub.stale.n_computed);
    const int32_t n = h->computed ? kv_blocks_for(h->arrival.n_prompt, to->fixed.block)
                                  : replica_full_blocks(to, n_computed);
    return ifl_max(n - n_hit - h->n_sent_blocks, 0);
}

/* The prompt is done, and there are blocks for it: what is left of it moves. */
static int send_rest(struct moves *moves, uint32_t slot, const struct ifl_done *step,
                     struct ifl_error *error)
{
    struct handover *h = &moves->of[slot];
    const int32_t n_blocks = blocks_to_send(moves, h, h->arrival.n_prompt);
    const bool by_layer = moves->rules->overlap == MOVE_BY_LAYER;
    const double last = handover_last_bytes(&moves->flight->moved, h->arrival.n_prompt);
    return send_blocks(moves, slot, n_blocks, last, by_layer ? step : NULL, error);
}

/* ---- what replicas have done ---- */

/* The router may name the decode replica only now. */
static int pick_decode(struct moves *moves, struct replica *replica, struct handover *h,
                       struct ifl_error *error)
{
    loop_open_pools(moves->loop, &h->arrival);
    return routing_pick_decode(&moves->loop->routing, replica, h->p, &h->to, error);
}

static int expect_lease(struct moves *moves, uint32_t slot, struct ifl_error *error)
{
    const struct handover *h = &moves->of[slot];
    const int64_t lease_ns = moves->rules->lease_ns;
    if (lease_ns == 0 || lease_ns > IFL_LAST_NS - h->prefilled_ns)
        return 0;
    return event_push(&moves->leases, h->prefilled_ns + lease_ns, h->arrival.serial,
                      (uint64_t)h->n_uses << 32 | slot) < 0
               ? ifl_fail_nomem(error)
               : 0;
}

static int hand_over(struct moves *moves, struct replica *replica, struct live_request *p,
                     const struct ifl_done *done, struct ifl_error *error)
{
    const uint32_t slot = p->handover;
    struct handover *h = &moves->of[slot];
    h->computed = true;
    h->prefilled_ns = done->end_ns;
    h->n_preempted = p->pub.n_preempted;
    h->n_swap_outs = p->rare->n_swap_outs;
    if (h->d) {
        replica_go_on(replica_at(moves, h->to), h->d, p);
    } else {
        if (pick_decode(moves, replica, h, error) < 0)
            return error->code;
        routing_note_handed_over(&moves->loop->routing, h->to);
        if (join_decode(moves, slot, done->end_ns, error) < 0)
            return error->code;
    }
    if (h->asked)
        return send_rest(moves, slot, done, error);
    return expect_lease(moves, slot, error);
}

/* Chunks of prompts that are not done yet. */
static int send_chunks(struct moves *moves, const struct replica *replica,
                       const struct ifl_done *done, struct ifl_error *error)
{
    const bool by_layer = moves->rules->overlap == MOVE_BY_LAYER;
    int rc = 0;
    for (size_t i = 0; i < replica->plan.n_planned && rc == 0; i++) {
        const struct live_request *r = replica->plan.planned[i].r;
        if (!r->hands_over || r->pub.state != IFL_RUNNING)
            continue;
        struct handover *h = handover_of(moves, r);
        const int32_t n = h->asked ? blocks_to_send(moves, h, r->pub.stale.n_computed) : 0;
        if (n > 0)
            rc = send_blocks(moves, r->handover, n, 0, by_layer ? done : NULL, error);
    }
    return rc;
}

int moves_hear_step(struct moves *moves, struct replica *replica, const struct ifl_done *done,
                    struct ifl_error *error)
{
    const struct moving *moving = &replica->moving;
    int rc = moves->rules->overlap == MOVE_AT_END ? 0 : send_chunks(moves, replica, done, error);
    for (size_t i = 0; i < moving->n_handed && rc == 0; i++)
        rc = hand_over(moves, replica, moving->handed[i], done, error);
    moving_clear_handed(&replica->moving);
    return rc;
}

/* The blocks at the prefill replica are free. */
static int release(struct moves *moves, struct handover *h, struct ifl_error *error)
{
    struct replica *replica = replica_at(moves, h->from);
    replica_release(replica, h->p, moves->loop->now_ns);
    return loop_note_gone(moves->loop, replica, error);
}

/* The decode replica has all K/V in its cache: nothing moves. From now on the client leaves there.
 */
static int do_without(struct moves *moves, struct handover *h, struct ifl_error *error)
{
    if (!h->p)
        return 0;
    if (loop_note_departure(moves->loop, &h->arrival, h->to, h->d, error) < 0)
        return error->code;
    return release(moves, h, error);
}

/* The decode replica has taken blocks for r, or needs no K/V for it. */
static int hear_load(struct moves *moves, struct live_request *r, struct ifl_error *error)
{
    struct handover *h = handover_of(moves, r);
    if (r->n_below == 0)
        return do_without(moves, h, error);
    h->asked = true;
    h->asked_ns = moves->loop->now_ns;
    if (h->computed)
        return send_rest(moves, r->handover, NULL, error);
    struct replica *from = replica_at(moves, h->from);
    replica_reserved(from, h->p, moves->loop->now_ns);
    loop_note_change(moves->loop, from);
    return 0;
}

int moves_hear_plan(struct moves *moves, struct replica *replica, struct ifl_error *error)
{
    const struct moving *moving = &replica->moving;
    int rc = 0;
    for (size_t i = 0; i < moving->n_asked && rc == 0; i++)
        rc = hear_load(moves, moving->asked[i], error);
    moving_clear_asked(&replica->moving);
    return rc;
}

/* ---- what has moved ---- */

int64_t moves_next_ns(const struct moves *moves)
{
    return ifl_min(carrier_next_ns(&moves->carrier), event_next_ns(&moves->leases));
}

static int record_move(struct moves *moves, const struct handover *h, const struct flying *flying,
                       const struct link_arrival *arrival, int64_t busy_ns, int64_t hidden_ns,
                       struct ifl_error *error)
{
    const struct ifl_move_record record = {
        .request_id = workload_id(moves->flight->workload, h->arrival.row, h->arrival.attempt),
        .from = (int32_t)h->from,
        .to = (int32_t)h->to,
        .sent_ns = arrival->sent_ns,
        .start_ns = arrival->begun_ns,
        .end_ns = arrival->end_ns,
        .moving_ns = busy_ns,
        .hidden_ns = hidden_ns,
        .n_bytes = flying->n_bytes,
        .n_blocks = flying->n_blocks,
    };
    return ifl_record_move(moves->flight->recorder, &record, error);
}

/* It left while its K/V was on its way: both sides are free now. */
static int drop_both(struct moves *moves, struct handover *h, struct ifl_error *error)
{
    struct replica *to = replica_at(moves, h->to);
    struct live_request *d = h->d;
    if (h->p && h->p->pub.state == IFL_MOVING && release(moves, h, error) < 0)
        return error->code;
    if (!d)
        return 0;
    replica_leave(to, d, h->left, moves->loop->now_ns);
    return loop_note_gone(moves->loop, to, error);
}

static int land(struct moves *moves, uint32_t slot, struct ifl_error *error)
{
    struct handover *h = &moves->of[slot];
    struct loop *loop = moves->loop;
    struct replica *to = replica_at(moves, h->to);
    struct live_request *d = h->d;
    h->loaded_ns = loop->now_ns;
    int rc = loop_note_departure(loop, &h->arrival, h->to, d, error);
    if (rc == 0)
        rc = release(moves, h, error);
    if (rc < 0)
        return rc;
    replica_loaded(to, d, loop->now_ns);
    if (d->answers_on_arrival)
        routing_tell_first_token(&loop->routing, to, d);
    return loop_note_gone(loop, to, error);
}

/* ---- K/V that is lost before it has moved ---- */

static int lose(struct moves *moves, struct handover *h, struct ifl_error *error)
{
    struct loop *loop = moves->loop;
    struct replica *to = replica_at(moves, h->to);
    struct live_request *d = h->d;
    if (loop_note_departure(loop, &h->arrival, h->to, d, error) < 0)
        return error->code;
    if (release(moves, h, error) < 0)
        return error->code;
    if (moves->rules->lost == LOST_RECOMPUTE) {
        replica_lose(to, d, loop->now_ns);
    } else {
        replica_leave(to, d, IFL_FAILED, loop->now_ns);
        d->n_lost = 0; /* what it has here is a hit */
    }
    return loop_note_gone(loop, to, error);
}

/* All of it should have come, but did not. */
IFL_APART static bool fails(const struct moves *moves, const struct handover *h)
{
    const uint64_t draw = ifl_draw(moves->flight->seed, IFL_DRAW_MOVE, h->arrival.serial, 0);
    return ifl_uniform(draw) < moves->rules->fail_frac;
}

/* ---- the end of a transfer ---- */

static int end_transfer(struct moves *moves, const struct link_arrival *arrival,
                        struct ifl_error *error)
{
    const uint32_t tag = (uint32_t)arrival->tag;
    const struct flying flying = moves->flying[tag];
    struct handover *h = &moves->of[flying.handover];
    const int64_t busy_ns = arrival->end_ns - arrival->begun_ns + flying.hidden_ns;
    const int64_t exposed_from_ns = ifl_max(arrival->begun_ns, h->prefilled_ns);
    const int64_t exposed_ns = h->computed ? ifl_max(arrival->end_ns - exposed_from_ns, 0) : 0;
    slots_give(&moves->flying_slots, tag);
    h->n_flying--;
    h->begun_ns = ifl_min(h->begun_ns, arrival->begun_ns);
    h->busy_ns += busy_ns;
    h->hidden_ns += busy_ns - exposed_ns;
    if (record_move(moves, h, &flying, arrival, busy_ns, busy_ns - exposed_ns, error) < 0)
        return error->code;
    if (h->n_flying > 0)
        return 0;
    if (h->left != IFL_FINISHED)
        return drop_both(moves, h, error);
    if (!h->computed || !h->asked || !h->d || !h->p || h->p->pub.state != IFL_MOVING)
        return 0;
    if (IFL_RARE(moves->rules->fail_frac > 0) && fails(moves, h))
        return lose(moves, h, error);
    return land(moves, flying.handover, error);
}

/* ---- leases ---- */

static int end_lease(struct moves *moves, uint64_t payload, struct ifl_error *error)
{
    struct handover *h = &moves->of[(uint32_t)payload];
    const bool waits = h->n_uses == payload >> 32 && h->computed && !h->asked && h->p && h->d &&
                       h->left == IFL_FINISHED;
    return waits ? lose(moves, h, error) : 0;
}

int moves_end(struct moves *moves, struct ifl_error *error)
{
    struct link_arrival arrival;
    int rc;
    while ((rc = carrier_take(&moves->carrier, moves->loop->now_ns, &arrival, error)) > 0)
        if (end_transfer(moves, &arrival, error) < 0)
            return error->code;
    while (rc == 0 && event_next_ns(&moves->leases) <= moves->loop->now_ns)
        rc = end_lease(moves, event_pop(&moves->leases).payload, error);
    return rc;
}
