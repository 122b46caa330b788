#include "run/flight_prefetch.h"

#include <stdlib.h>

#include "inflight/minmax.h"

#include "run/flight_loop.h"

enum { BATCH_UNITS = 128 };
#define NO_SLOT UINT32_MAX

/* A request in line. */
struct prefetch {
    struct live_request *r; /* another request by now if it has another serial */
    uint64_t serial;
    size_t row;
    int32_t attempt;
    uint32_t replica, next; /* next in line */
    struct prefetch_ask ask;
    int32_t chain, n_batch_blocks; /* of the batch under way */
    int64_t sent_ns;               /* as it joined */
};

struct line {
    uint32_t first, last;      /* NO_SLOT: it is empty */
    int32_t read[BATCH_UNITS]; /* [n_read] units of the tier that the batch under way reads, and
                                  holds (LMCache 0.5.6, local_disk_backend.py, pins what a lookup
                                  finds); TIER_NONE: the tier does not have it any more */
    int32_t n_read;
};

struct prefetching {
    struct loop *loop;
    struct flight *flight;
    struct links links;  /* one a line */
    struct line *lines;  /* [replicas][N_TIERS] */
    struct prefetch *of; /* [slots.n] */
    struct slots slots;
};

static struct replica *replica_at(const struct prefetching *prefetching, uint32_t number)
{
    return &prefetching->flight->replicas[number];
}

static const struct tier_links *links_of(const struct prefetching *prefetching, uint32_t number)
{
    return &prefetching->flight->tiers[prefetching->loop->routing.loads[number].pool];
}

static uint32_t line_of(uint32_t number, int tier)
{
    return number * N_TIERS + (uint32_t)tier;
}

struct prefetching *prefetching_create(struct loop *loop, struct ifl_error *error)
{
    struct prefetching *prefetching = calloc(1, sizeof *prefetching);
    const uint32_t n = loop->flight->n_replicas;
    if (!prefetching) {
        ifl_fail_nomem(error);
        return NULL;
    }
    *prefetching =
        (struct prefetching){.loop = loop,
                             .flight = loop->flight,
                             .lines = calloc((size_t)n * N_TIERS, sizeof *prefetching->lines)};
    if (!prefetching->lines ||
        links_create(&prefetching->links, n * N_TIERS, &(struct link_spec){0}) < 0) {
        ifl_fail_nomem(error);
        prefetching_destroy(prefetching);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        for (int t = 0; t < N_TIERS; t++) {
            prefetching->lines[line_of(i, t)] = (struct line){.first = NO_SLOT, .last = NO_SLOT};
            links_set(&prefetching->links, line_of(i, t), &links_of(prefetching, i)->spec[t]);
        }
    return prefetching;
}

void prefetching_destroy(struct prefetching *prefetching)
{
    if (!prefetching)
        return;
    links_destroy(&prefetching->links);
    slots_destroy(&prefetching->slots);
    free(prefetching->of);
    free(prefetching->lines);
    free(prefetching);
}

/* It waits where it was asked for, and has not made do with less. */
static bool still_waits(const struct prefetch *p)
{
    return p->r->pub.serial == p->serial && p->r->pub.state == IFL_WAITING &&
           p->r->rare->tiers.prefetches;
}

/* ---- batches ---- */

static int send_batch(struct prefetching *prefetching, uint32_t slot, int32_t n_units,
                      struct ifl_error *error)
{
    struct prefetch *p = &prefetching->of[slot];
    const struct tier_links *links = links_of(prefetching, p->replica);
    const struct kv_tier *tier = replica_at(prefetching, p->replica)->tiers.of[p->ask.tier];
    const int64_t block_pieces = links->block_pieces[p->ask.tier];
    p->n_batch_blocks = n_units * tier->rules.unit_blocks;
    const struct link_load load = {
        .path = {line_of(p->replica, p->ask.tier), LINK_NONE},
        .n_bytes = (int64_t)(links->block_bytes * p->n_batch_blocks),
        .n_pieces = block_pieces > 0 ? block_pieces * p->n_batch_blocks : 1,
        .at_ns = prefetching->loop->now_ns,
        .rank = p->serial,
        .tag = slot,
    };
    return links_send(&prefetching->links, &load) < 0 ? ifl_fail_nomem(error) : 0;
}

/* 1: the next batch is under way; 0: nothing more is to come. */
static int begin_batch(struct prefetching *prefetching, uint32_t slot, struct ifl_error *error)
{
    struct prefetch *p = &prefetching->of[slot];
    struct replica *replica = replica_at(prefetching, p->replica);
    struct line *line = &prefetching->lines[line_of(p->replica, p->ask.tier)];
    const int32_t n_units =
        replica_take_prefetch(replica, p->r, &p->ask, BATCH_UNITS, &p->chain, line->read);
    line->n_read = n_units;
    if (n_units > 0 && send_batch(prefetching, slot, n_units, error) < 0)
        return error->code;
    /* what the first tier has lost for it may go to another one */
    return tiering_hear_step(prefetching->loop->tiering, replica, error) < 0 ? error->code
                                                                             : n_units > 0;
}

/* ---- the line ---- */

/* The first in line is through. */
static void finish(struct prefetching *prefetching, struct line *line)
{
    const uint32_t slot = line->first;
    const struct prefetch *p = &prefetching->of[slot];
    const int64_t now_ns = prefetching->loop->now_ns;
    if (still_waits(p)) {
        struct replica *replica = replica_at(prefetching, p->replica);
        replica_end_prefetch(p->r, now_ns);
        replica_hear_tiers(replica, now_ns);
        loop_note_change(prefetching->loop, replica);
    }
    line->first = p->next;
    line->last = line->first == NO_SLOT ? NO_SLOT : line->last;
    slots_give(&prefetching->slots, slot);
}

/* The first in line for which something is to come is next. */
static int begin_next(struct prefetching *prefetching, struct line *line, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0 && line->first != NO_SLOT) {
        if (still_waits(&prefetching->of[line->first]))
            rc = begin_batch(prefetching, line->first, error);
        if (rc == 0)
            finish(prefetching, line);
    }
    return rc < 0 ? rc : 0;
}

/* ---- what has come ---- */

int64_t prefetching_next_ns(const struct prefetching *prefetching)
{
    return links_next_ns(&prefetching->links);
}

/* Hidden is what passed before the request was passed over for it. */
static int record(const struct prefetching *prefetching, const struct prefetch *p,
                  const struct link_arrival *arrival, struct ifl_error *error)
{
    const struct tier_links *links = links_of(prefetching, p->replica);
    const struct live_tiers *own = &p->r->rare->tiers;
    const int64_t moving_ns = arrival->end_ns - arrival->begun_ns;
    const int64_t exposed_ns =
        own->passed_over ? arrival->end_ns - ifl_max(arrival->begun_ns, own->passed_ns) : 0;
    const struct ifl_move_record move = {
        .request_id = workload_id(prefetching->flight->workload, p->row, p->attempt),
        .from = IFL_MOVE_TIER(p->ask.tier),
        .to = IFL_MOVE_TIER(TIER_HOST),
        .sent_ns = p->sent_ns,
        .start_ns = arrival->begun_ns,
        .end_ns = arrival->end_ns,
        .moving_ns = moving_ns,
        .hidden_ns = moving_ns - exposed_ns,
        .n_bytes = (int64_t)(links->block_bytes * p->n_batch_blocks),
        .n_blocks = p->n_batch_blocks,
    };
    return ifl_record_move(prefetching->flight->recorder, &move, error);
}

static void drop_batch(struct prefetch *p, struct replica *replica)
{
    kv_tier_drop(replica->tiers.of[TIER_HOST], p->chain);
    p->chain = TIER_NONE;
}

/* Only the first in line has a batch under way. */
void prefetching_drop_left(struct prefetching *prefetching, struct replica *replica)
{
    for (int t = TIER_HOST + 1; t < N_TIERS; t++) {
        const uint32_t slot = prefetching->lines[line_of(replica->fixed.number, t)].first;
        if (slot != NO_SLOT && !still_waits(&prefetching->of[slot]))
            drop_batch(&prefetching->of[slot], replica);
    }
}

/* A batch that was dropped is read to its end, too. */
static void let_go(struct line *line, struct kv_tier *tier)
{
    for (int32_t i = 0; i < line->n_read; i++)
        if (line->read[i] != TIER_NONE)
            kv_tier_let_go(tier, line->read[i]);
    line->n_read = 0;
}

static int end_batch(struct prefetching *prefetching, const struct link_arrival *arrival,
                     struct ifl_error *error)
{
    const uint32_t slot = (uint32_t)arrival->tag;
    struct prefetch *p = &prefetching->of[slot];
    struct replica *replica = replica_at(prefetching, p->replica);
    struct line *line = &prefetching->lines[line_of(p->replica, p->ask.tier)];
    ifl_assert(line->first == slot);
    let_go(line, replica->tiers.of[p->ask.tier]);
    if (!still_waits(p)) {
        drop_batch(p, replica);
        finish(prefetching, line);
        return begin_next(prefetching, line, error);
    }
    kv_tier_land(replica->tiers.of[TIER_HOST], p->chain);
    p->chain = TIER_NONE;
    if (record(prefetching, p, arrival, error) < 0)
        return error->code;
    return tiering_hear_step(prefetching->loop->tiering, replica, error) < 0
               ? error->code
               : begin_next(prefetching, line, error);
}

int prefetching_end(struct prefetching *prefetching, struct ifl_error *error)
{
    struct link_arrival arrival;
    int rc;
    while ((rc = links_take(&prefetching->links, prefetching->loop->now_ns, &arrival)) > 0)
        if (end_batch(prefetching, &arrival, error) < 0)
            return error->code;
    return rc < 0 ? ifl_fail_nomem(error) : 0;
}

/* ---- requests that come ---- */

/* A batch that takes no time has arrived before the next plan. */
int prefetching_hear_join(struct prefetching *prefetching, struct replica *replica,
                          struct live_request *r, struct ifl_error *error)
{
    struct prefetch_ask ask;
    if (!replica_ask_prefetch(replica, r, &ask))
        return 0;
    if (slots_reserve(&prefetching->slots, &prefetching->of, sizeof *prefetching->of) < 0)
        return ifl_fail_nomem(error);
    const uint32_t slot = slots_take(&prefetching->slots);
    struct line *line = &prefetching->lines[line_of(replica->fixed.number, ask.tier)];
    prefetching->of[slot] = (struct prefetch){.r = r,
                                              .serial = r->pub.serial,
                                              .row = r->row,
                                              .attempt = r->attempt,
                                              .replica = replica->fixed.number,
                                              .next = NO_SLOT,
                                              .ask = ask,
                                              .chain = TIER_NONE,
                                              .sent_ns = prefetching->loop->now_ns};
    if (line->first != NO_SLOT) {
        prefetching->of[line->last].next = slot;
        line->last = slot;
        return 0;
    }
    line->first = line->last = slot;
    return begin_next(prefetching, line, error) < 0 ? error->code
                                                    : prefetching_end(prefetching, error);
}
