#include "run/flight_tiers.h"

#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"

#include "run/carrier.h"
#include "run/flight_loop.h"
#include "run/flight_prefetch.h"

/* What a request loads. */
struct load {
    struct tier_ask ask;
    uint32_t replica;
    int32_t n_flying;
    int64_t asked_ns;
    bool holds; /* a step waits for it */
    enum ifl_status left;
    uint32_t *read; /* [n_read] blocks of the tier, where an executor copies them */
    size_t n_read;
    struct tier_pin *pins; /* [n_pins] units of tiers that it reads */
    size_t n_pins;
};

#define TO_TIER UINT32_MAX

/* K/V on its way. */
struct flying {
    uint32_t load; /* TO_TIER: it goes to the tier */
    uint32_t replica;
    int tier;
    int32_t chain; /* of the units that go there */
    int32_t n_blocks;
    int64_t n_bytes, hidden_ns;
};

struct tiering {
    struct loop *loop;
    struct flight *flight;
    struct carrier carrier; /* links: place(i, t) to replica i from tier t; behind it: back */
    struct load *loads;     /* [load_slots.n] */
    struct slots load_slots;
    struct flying *flying; /* [flying_slots.n] */
    struct slots flying_slots;
    int32_t *n_before;               /* [replicas] loads that a step waits for */
    uint64_t *seen_changes;          /* [replicas] of what can be found in its tiers */
    uint64_t *seen_stores;           /* [pools] of what can be found in its store */
    uint64_t n_stores;               /* transfers to tiers so far */
    struct prefetching *prefetching; /* NULL: no request's K/V comes before its turn */
};

/* ---- memory ---- */

static uint32_t place(uint32_t replica, int tier)
{
    return 2 * (replica * N_TIERS + (uint32_t)tier);
}

static uint32_t pool_of(const struct tiering *tiering, uint32_t replica)
{
    return tiering->loop->routing.loads[replica].pool;
}

static const struct tier_links *links_of(const struct tiering *tiering, uint32_t replica)
{
    return &tiering->flight->tiers[pool_of(tiering, replica)];
}

static void set_links(struct tiering *tiering)
{
    const struct flight *flight = tiering->flight;
    for (uint32_t i = 0; i < flight->n_replicas; i++)
        for (int t = 0; t < N_TIERS; t++) {
            links_set(&tiering->carrier.links, place(i, t), &links_of(tiering, i)->spec[t]);
            links_set(&tiering->carrier.links, place(i, t) + 1, &links_of(tiering, i)->spec[t]);
        }
}

static bool prefetches(const struct flight *flight)
{
    for (uint32_t i = 0; i < flight->n_replicas; i++)
        if (flight->replicas[i].tiers.prefetches)
            return true;
    return false;
}

struct tiering *tiering_create(struct loop *loop, struct ifl_error *error)
{
    struct tiering *tiering = calloc(1, sizeof *tiering);
    struct flight *flight = loop->flight;
    const uint32_t n = flight->n_replicas;
    if (!tiering) {
        ifl_fail_nomem(error);
        return NULL;
    }
    *tiering =
        (struct tiering){.loop = loop,
                         .flight = flight,
                         .n_before = calloc(n, sizeof *tiering->n_before),
                         .seen_changes = calloc(n, sizeof *tiering->seen_changes),
                         .seen_stores = calloc(flight->n_pools, sizeof *tiering->seen_stores)};
    if (!tiering->n_before || !tiering->seen_changes || !tiering->seen_stores ||
        carrier_create(&tiering->carrier, CARRIES_TIERS, &loop->carried, flight, place(n, 0),
                       &flight->tiers[0].spec[0]) < 0) {
        ifl_fail_nomem(error);
        tiering_destroy(tiering);
        return NULL;
    }
    set_links(tiering);
    if (prefetches(flight) && !(tiering->prefetching = prefetching_create(loop, error))) {
        tiering_destroy(tiering);
        return NULL;
    }
    return tiering;
}

static void free_lists(struct load *load)
{
    free(load->read);
    free(load->pins);
    load->read = NULL;
    load->pins = NULL;
}

void tiering_destroy(struct tiering *tiering)
{
    if (!tiering)
        return;
    carrier_destroy(&tiering->carrier);
    prefetching_destroy(tiering->prefetching);
    for (uint32_t i = 0; i < tiering->load_slots.n; i++)
        free_lists(&tiering->loads[i]);
    slots_destroy(&tiering->load_slots);
    slots_destroy(&tiering->flying_slots);
    free(tiering->loads);
    free(tiering->flying);
    free(tiering->seen_stores);
    free(tiering->n_before);
    free(tiering->seen_changes);
    free(tiering);
}

/* ---- sending ---- */

static struct link_load load_of(const struct tiering *tiering, const struct flying *flying,
                                uint64_t rank)
{
    const struct tier_links *links = links_of(tiering, flying->replica);
    const int64_t block_pieces = links->block_pieces[flying->tier];
    const uint32_t to_tier = flying->load == TO_TIER;
    return (struct link_load){
        .path = {place(flying->replica, flying->tier) + to_tier, LINK_NONE},
        .n_bytes = flying->n_bytes,
        .n_pieces = block_pieces > 0 ? block_pieces * flying->n_blocks : 1,
        .at_ns = tiering->loop->now_ns,
        .rank = rank,
    };
}

/* hides: the part of it, 0 to 1, that passes beside the step which waits for the rest. */
static int send(struct tiering *tiering, struct flying flying, uint64_t rank, double hides,
                struct ifl_error *error)
{
    if (slots_reserve(&tiering->flying_slots, &tiering->flying, sizeof *tiering->flying) < 0)
        return ifl_fail_nomem(error);
    const uint32_t tag = slots_take(&tiering->flying_slots);
    struct link_load load = load_of(tiering, &flying, rank);
    if (hides > 0) {
        const int64_t busy_ns = links_busy_ns(&tiering->carrier.links, &load);
        load.passed = hides;
        flying.hidden_ns = busy_ns - links_busy_ns(&tiering->carrier.links, &load);
    }
    load.tag = tag;
    tiering->flying[tag] = flying;
    const int32_t here = (int32_t)flying.replica, tier = IFL_MOVE_TIER(flying.tier);
    return flying.load == TO_TIER ? carrier_send(&tiering->carrier, &load, here, tier, error)
                                  : carrier_send(&tiering->carrier, &load, tier, here, error);
}

/* Of transfers that arrive at one time, loads come first, then stores in the order of the replicas'
 * numbers, and those of one replica as they were sent: a shared store has them in this order. */
static uint64_t store_rank(struct tiering *tiering, uint32_t replica)
{
    const uint64_t sent = tiering->n_stores++ & ((UINT64_C(1) << 40) - 1);
    return UINT64_C(1) << 63 | (uint64_t)replica << 40 | sent;
}

static int64_t bytes_of(const struct tiering *tiering, uint32_t replica, int32_t n_blocks)
{
    return (int64_t)(links_of(tiering, replica)->block_bytes * n_blocks);
}

static int list_stores(struct tiering *tiering, const struct kv_tier *tier)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < tier->places->n_stores; i++)
        rc = carrier_add(&tiering->carrier, tier->places->stores[i]);
    tier_places_settle(tier->places);
    return rc;
}

/* The chain of what the tiers have been given since. Without a link it is there at once. */
static int flush(struct tiering *tiering, struct replica *replica, struct ifl_error *error)
{
    int rc = 0;
    for (int t = 0; t < N_TIERS && rc == 0; t++) {
        struct kv_tier *tier = replica->tiers.of[t];
        if (tier && tier->places && list_stores(tiering, tier) < 0)
            return ifl_fail_nomem(error);
        if (!tier || tier->n_coming == 0)
            continue;
        struct flying flying = {.load = TO_TIER, .replica = replica->fixed.number, .tier = t};
        int32_t n_units;
        flying.chain = kv_tier_take_coming(tier, &n_units);
        flying.n_blocks = n_units * tier->rules.unit_blocks;
        flying.n_bytes = bytes_of(tiering, flying.replica, flying.n_blocks);
        if (tier->rules.linked)
            rc = send(tiering, flying, store_rank(tiering, flying.replica), 0, error);
        else
            kv_tier_land(tier, flying.chain);
    }
    return rc;
}

/* The store of its pool has changed since the pool was last told. */
static bool store_has_changed(struct tiering *tiering, const struct replica *replica)
{
    const struct kv_tier *store = replica->tiers.of[TIER_STORE];
    uint64_t *seen = &tiering->seen_stores[pool_of(tiering, replica->fixed.number)];
    if (!store || store->n_changes == *seen)
        return false;
    *seen = store->n_changes;
    return true;
}

/* Notifies the replicas with tiers that have changed: this one, and those that share its store. */
static void tell_changes(struct tiering *tiering, const struct replica *replica)
{
    const uint32_t number = replica->fixed.number;
    const struct fleet_pool *pool = &tiering->flight->pools[pool_of(tiering, number)];
    const bool of_all = store_has_changed(tiering, replica);
    const uint32_t first = of_all ? pool->first : number;
    const uint32_t end = of_all ? pool->first + pool->n : number + 1;
    for (uint32_t i = first; i < end; i++) {
        struct replica *other = &tiering->flight->replicas[i];
        const uint64_t n_changes = tiers_changes(&other->tiers);
        if (n_changes == tiering->seen_changes[i])
            continue;
        tiering->seen_changes[i] = n_changes;
        if (!other->in_flight.busy || other->here.waiting.n > 0)
            replica_hear_tiers(other, tiering->loop->now_ns);
    }
}

/* ---- loads ---- */

/* What the loads of a plan from one tier take behind their latency: the longest of them where links
 * are not shared, else all together. */
static double loads_ns(const struct tiering *tiering, const struct replica *replica, int tier)
{
    const bool apart =
        links_of(tiering, replica->fixed.number)->spec[tier].sharing == LINK_UNSHARED;
    double x = 0;
    for (size_t i = 0; i < replica->tiers.n_asked; i++) {
        const struct tier_ask *ask = &replica->tiers.asked[i];
        const struct flying flying = {
            .replica = replica->fixed.number,
            .tier = tier,
            .n_blocks = ask->n_blocks[tier],
            .n_bytes = bytes_of(tiering, replica->fixed.number, ask->n_blocks[tier])};
        const struct link_load load = load_of(tiering, &flying, 0);
        const double one = (double)links_busy_ns(&tiering->carrier.links, &load);
        if (ask->at_once && ask->n_blocks[tier] > 0)
            x = apart ? fmax(x, one) : x + one;
    }
    return x;
}

/* What these loads, layer by layer, hide beside the step of T: x in all, of which
 * max(x / L, x - T (L - 1) / L) is waited for. The first byte is waited for, too: nothing hides the
 * latency. */
static double hidden_part(const struct tiering *tiering, const struct replica *replica, int tier,
                          int64_t step_ns)
{
    const double n_layers = links_of(tiering, replica->fixed.number)->n_layers;
    const double x = loads_ns(tiering, replica, tier);
    const double exposed = fmax(x / n_layers, x - (double)step_ns * (n_layers - 1) / n_layers);
    return x > 0 ? 1 - exposed / x : 0;
}

static int64_t duration_ns(const struct tiering *tiering, const struct replica *replica)
{
    const struct flight *flight = tiering->flight;
    int64_t step_ns = 0;
    if (!flight->executor->durations ||
        flight->executor->durations(flight->executor_self, &replica->in_flight.desc, 1, &step_ns) ==
            0)
        return 0;
    return step_ns;
}

/* The blocks of a load that is copied. */
static int list_load(struct tiering *tiering, const struct replica *replica, struct load *load)
{
    const struct tier_ask *ask = &load->ask;
    const struct ifl_copy *copies = replica->tiers.copies + ask->first_copy;
    int rc = 0;
    load->read = malloc((ask->n_copies + 1) * sizeof *load->read);
    if (!load->read)
        return IFL_E_NOMEM;
    for (; rc == 0 && load->n_read < ask->n_copies; load->n_read++) {
        load->read[load->n_read] = copies[load->n_read].from;
        rc = carrier_add(&tiering->carrier, copies[load->n_read]);
    }
    return rc;
}

static void end_reading(const struct tiering *tiering, struct load *load)
{
    struct kv_tier *const *of = tiering->flight->replicas[load->replica].tiers.of;
    for (size_t i = 0; i < load->n_read; i++)
        tier_places_done(of[TIER_HOST]->places, load->read[i]);
    free_lists(load);
}

static int keep_pins(const struct replica *replica, struct load *load)
{
    const struct tier_ask *ask = &load->ask;
    load->pins = malloc((ask->n_pins + 1) * sizeof *load->pins);
    if (!load->pins)
        return IFL_E_NOMEM;
    for (; load->n_pins < ask->n_pins; load->n_pins++)
        load->pins[load->n_pins] = replica->tiers.pins[ask->first_pin + load->n_pins];
    return 0;
}

/* The load has read what it needs of the tier. */
static void let_go(const struct tiering *tiering, const struct load *load, int tier)
{
    struct kv_tier *of = tiering->flight->replicas[load->replica].tiers.of[tier];
    for (size_t i = 0; i < load->n_pins; i++)
        if (load->pins[i].tier == tier)
            kv_tier_let_go(of, load->pins[i].slot);
}

static int begin_load(struct tiering *tiering, struct replica *replica, const struct tier_ask *ask,
                      bool submits, const double hides[N_TIERS], struct ifl_error *error)
{
    const uint32_t number = replica->fixed.number;
    const bool copies = carrier_copies(&tiering->carrier); /* then a later step waits, too */
    int rc = 0;
    if (slots_reserve(&tiering->load_slots, &tiering->loads, sizeof *tiering->loads) < 0)
        return ifl_fail_nomem(error);
    const uint32_t slot = slots_take(&tiering->load_slots);
    struct load *load = &tiering->loads[slot];
    *load = (struct load){.ask = *ask,
                          .replica = number,
                          .asked_ns = tiering->loop->now_ns,
                          .holds = ask->at_once && (submits || copies),
                          .left = IFL_FINISHED};
    if (keep_pins(replica, load) < 0 || (copies && list_load(tiering, replica, load) < 0))
        return ifl_fail_nomem(error);
    for (int t = 0; t < N_TIERS && rc == 0; t++) {
        if (ask->n_blocks[t] == 0 || !replica->tiers.of[t]->rules.linked)
            continue;
        const struct flying flying = {.load = slot,
                                      .replica = number,
                                      .tier = t,
                                      .n_blocks = ask->n_blocks[t],
                                      .n_bytes = bytes_of(tiering, number, ask->n_blocks[t])};
        load->n_flying++;
        rc = send(tiering, flying, ask->serial, load->holds ? hides[t] : 0, error);
    }
    tiering->n_before[number] += load->holds;
    return rc;
}

/* A request of it may have started, or left, before a batch for it arrived. */
static void drop_left(struct tiering *tiering, struct replica *replica)
{
    if (tiering->prefetching)
        prefetching_drop_left(tiering->prefetching, replica);
}

int tiering_hear_plan(struct tiering *tiering, struct replica *replica, bool submits,
                      struct ifl_error *error)
{
    struct tiers *tiers = &replica->tiers;
    double hides[N_TIERS] = {0};
    int rc = 0;
    if (tiers->n_asked > 0 && submits) {
        const int64_t step_ns = duration_ns(tiering, replica);
        for (int t = 0; t < N_TIERS; t++)
            if (tiers->of[t] && tiers->of[t]->rules.linked &&
                tiers->of[t]->rules.loads == TIER_LOADS_BY_LAYER)
                hides[t] = hidden_part(tiering, replica, t, step_ns);
    }
    if (carrier_copies(&tiering->carrier)) /* what is loaded may take the place of what is stored */
        rc = flush(tiering, replica, error);
    for (size_t i = 0; i < tiers->n_asked && rc == 0; i++)
        rc = begin_load(tiering, replica, &tiers->asked[i], submits, hides, error);
    tiers_clear_asked(tiers);
    drop_left(tiering, replica);
    if (rc == 0)
        rc = flush(tiering, replica, error);
    tell_changes(tiering, replica);
    return rc;
}

int tiering_hear_step(struct tiering *tiering, struct replica *replica, struct ifl_error *error)
{
    drop_left(tiering, replica);
    const int rc = flush(tiering, replica, error);
    tell_changes(tiering, replica);
    return rc;
}

bool tiering_awaited(const struct tiering *tiering, const struct replica *replica)
{
    return tiering->n_before[replica->fixed.number] > 0;
}

/* ---- what has come ---- */

int64_t tiering_next_ns(const struct tiering *tiering)
{
    const int64_t next_ns = carrier_next_ns(&tiering->carrier);
    return tiering->prefetching ? ifl_min(next_ns, prefetching_next_ns(tiering->prefetching))
                                : next_ns;
}

int tiering_hear_join(struct tiering *tiering, struct replica *replica, struct live_request *r,
                      struct ifl_error *error)
{
    return replica->tiers.prefetches
               ? prefetching_hear_join(tiering->prefetching, replica, r, error)
               : 0;
}

static int end_load(struct tiering *tiering, const struct load *load, struct ifl_error *error)
{
    struct replica *replica = &tiering->flight->replicas[load->replica];
    struct live_request *r = load->ask.r;
    const int64_t now_ns = tiering->loop->now_ns;
    if (load->holds) {
        tiering->n_before[load->replica]--;
        return loop_let_step_go(tiering->loop, replica, error);
    }
    if (load->ask.at_once)
        return 0;
    ifl_assert(r->pub.serial == load->ask.serial && r->pub.state == IFL_MOVING);
    if (load->left == IFL_FINISHED) {
        replica_loaded_below(replica, r, now_ns);
    } else {
        r->left = IFL_FINISHED;
        replica_leave(replica, r, load->left, now_ns);
    }
    return loop_note_gone(tiering->loop, replica, error);
}

static int record_load(struct tiering *tiering, const struct flying *flying,
                       const struct link_arrival *arrival, struct ifl_error *error)
{
    const struct load *load = &tiering->loads[flying->load];
    const struct tier_ask *ask = &load->ask;
    const int64_t busy_ns = arrival->end_ns - arrival->begun_ns + flying->hidden_ns;
    const struct ifl_move_record record = {
        .request_id = workload_id(tiering->flight->workload, ask->row, ask->attempt),
        .from = IFL_MOVE_TIER(flying->tier),
        .to = (int32_t)flying->replica,
        .sent_ns = arrival->sent_ns,
        .start_ns = arrival->begun_ns,
        .end_ns = arrival->end_ns,
        .moving_ns = busy_ns,
        .hidden_ns = flying->hidden_ns,
        .n_bytes = flying->n_bytes,
        .n_blocks = flying->n_blocks,
    };
    if (ask->r->pub.serial == ask->serial && ask->r->pub.state != IFL_DONE) {
        live_own(ask->r)->tiers.load_ns += busy_ns;
        if (load->holds && load->n_flying == 1)
            live_own(ask->r)->tiers.exposed_ns += arrival->end_ns - load->asked_ns;
    }
    return ifl_record_move(tiering->flight->recorder, &record, error);
}

static int end_transfer(struct tiering *tiering, const struct link_arrival *arrival,
                        struct ifl_error *error)
{
    const uint32_t tag = (uint32_t)arrival->tag;
    const struct flying flying = tiering->flying[tag];
    struct replica *replica = &tiering->flight->replicas[flying.replica];
    slots_give(&tiering->flying_slots, tag);
    if (flying.load == TO_TIER) {
        kv_tier_land(replica->tiers.of[flying.tier], flying.chain);
        tell_changes(tiering, replica);
        return 0;
    }
    if (record_load(tiering, &flying, arrival, error) < 0)
        return error->code;
    struct load *load = &tiering->loads[flying.load];
    let_go(tiering, load, flying.tier);
    if (--load->n_flying > 0)
        return 0;
    end_reading(tiering, load);
    const struct load ended = *load;
    slots_give(&tiering->load_slots, flying.load);
    return end_load(tiering, &ended, error);
}

int tiering_end(struct tiering *tiering, struct ifl_error *error)
{
    struct link_arrival arrival;
    int rc;
    while ((rc = carrier_take(&tiering->carrier, tiering->loop->now_ns, &arrival, error)) > 0)
        if (end_transfer(tiering, &arrival, error) < 0)
            return error->code;
    return rc == 0 && tiering->prefetching ? prefetching_end(tiering->prefetching, error) : rc;
}

/* ---- requests that leave ---- */

int tiering_leave(struct tiering *tiering, struct replica *replica, struct live_request *r,
                  enum ifl_status status, bool *waits, struct ifl_error *error)
{
    *waits = r->pub.state == IFL_MOVING;
    if (!*waits)
        return 0;
    for (uint32_t i = 0; i < tiering->load_slots.n; i++) {
        struct load *load = &tiering->loads[i];
        if (load->n_flying > 0 && load->ask.r == r && load->ask.serial == r->pub.serial)
            load->left = status;
    }
    r->left = status;
    return loop_report_early(tiering->loop, replica, r, error);
}
