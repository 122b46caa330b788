/* Preconditions of what moves K/V, and of what a router knows of it: links, slots, requests on
 * their way, tiers in host memory; each broken once. */
#include "violates.h"

#include "fleet/holders.h"
#include "fleet/link.h"
#include "replica/kv/tier_places.h"
#include "replica/replica_parts.h"

static struct live_request request = {.pub = {.n_seqs = 1, .n_prompt = 4}, .rare = &live_no_rare};
static struct live_request other = {.pub = {.n_seqs = 1, .n_prompt = 4}, .rare = &live_no_rare};
static struct replica idle; /* zeroed: empty, no step in flight */
static struct replica flying = {.in_flight = {.busy = true}};

/* ---- links ---- */

static struct links two_links(void)
{
    const struct link_spec spec = {0, 1e9, 0, LINK_FIFO};
    struct links of;
    ifl_require(links_create(&of, 2, &spec) == 0);
    return of;
}

VIOLATES(links, beyond, links_send, "load->path[0] < links->n")
{
    struct links of = two_links();
    links_send(&of, &(struct link_load){.path = {2, LINK_NONE}, .n_pieces = 1});
}

VIOLATES(links, fewer_than_no_bytes, links_send, "load->n_bytes >= 0")
{
    struct links of = two_links();
    links_send(&of, &(struct link_load){.path = {0, 1}, .n_bytes = -1, .n_pieces = 1});
}

VIOLATES(links, one_twice, links_send, "load->path[1] != load->path[0]")
{
    struct links of = two_links();
    links_send(&of, &(struct link_load){.path = {1, 1}, .n_bytes = 1, .n_pieces = 1});
}

/* A link keeps what it is while something is on its way. */
VIOLATES(links, set_in_use, links_set, "links->slots.n == links->slots.n_free")
{
    const struct link_spec spec = {0, 1e9, 0, LINK_SHARED};
    struct links of = two_links();
    ifl_require(links_send(&of, &(struct link_load){.path = {0, 1}, .n_bytes = 1, .n_pieces = 1}) ==
                0);
    links_set(&of, 0, &spec);
}

VIOLATES(places, take_none, slots_take, "slots->n_free > 0")
{
    struct slots none = {0};
    slots_take(&none);
}

VIOLATES(places, give_a_stranger, slots_give, "at < slots->n")
{
    struct slots none = {0};
    slots_give(&none, 0);
}

VIOLATES(places, give_twice, slots_give, "slots->n_free < slots->n")
{
    struct slots slots = {0};
    int *array = NULL;
    ifl_require(slots_reserve(&slots, &array, sizeof *array) == 0);
    slots_give(&slots, 0);
}

/* ---- requests on their way ---- */

VIOLATES(moving, end_of_none, moving_end, "moving->n > 0")
{
    request.pub.state = IFL_MOVING;
    moving_end(&idle.moving, &request);
}

VIOLATES(moving, loaded_of_none, moving_unload, "moving->n_loaded > 0")
{
    moving_unload(&idle.moving, &request);
}

VIOLATES(moving, swap_to_nowhere, moving_swap, "r->swaps != SWAPS_NOT")
{
    request.pub.state = IFL_MOVING;
    moving_swap(&idle.moving, &request);
}

VIOLATES(moving, end_of_no_swap, moving_end_swap, "r->swaps != SWAPS_NOT")
{
    idle.moving.n = 1;
    request.pub.state = IFL_MOVING;
    moving_end_swap(&idle.moving, &request);
}

VIOLATES(moving, load_of_running, replica_load, "r->pub.state == IFL_WAITING")
{
    request.pub.state = IFL_RUNNING;
    request.n_below = 4;
    replica_load(&idle, &request, 0, false);
}

VIOLATES(moving, load_of_nothing, replica_load, "r->n_below > 0")
{
    replica_load(&idle, &request, 0, false);
}

VIOLATES(moving, load_of_no_tier, replica_load_below, "r->n_below > 0")
{
    replica_load_below(&idle, &request, 0);
}

VIOLATES(moving, release, replica_release, "r->pub.state == IFL_MOVING")
{
    replica_release(&idle, &request, 0);
}

VIOLATES(moving, lose, replica_lose, "r->pub.state == IFL_MOVING")
{
    request.pub.state = IFL_RUNNING;
    replica_lose(&idle, &request, 0);
}

VIOLATES(moving, expect_running, replica_expect, "r->pub.state == IFL_WAITING")
{
    request.pub.state = IFL_RUNNING;
    replica_expect(&idle, &request, 1, 0, 0);
}

VIOLATES(moving, expect_more_of_none, replica_expect_more, "r->pub.state == IFL_MOVING")
{
    replica_expect_more(&idle, &request, 1, 0);
}

VIOLATES(moving, take_as_waiting, replica_take_waiting, "from->pub.state == IFL_WAITING")
{
    other.pub.state = IFL_RUNNING;
    replica_take_waiting(&idle, &request, &other, 1, 0, 0);
}

VIOLATES(moving, take_in_running, replica_take_in, "from->pub.state == IFL_MOVING")
{
    other.pub.state = IFL_RUNNING;
    replica_take_in(&idle, &request, &other, 0);
}

VIOLATES(moving, give_away_waiting, replica_give_away, "r->pub.state == IFL_RUNNING")
{
    replica_give_away(&idle, &request, 0);
}

VIOLATES(moving, give_away_in_a_step, replica_give_away, "!replica->in_flight.busy")
{
    request.pub.state = IFL_RUNNING;
    replica_give_away(&flying, &request, 0);
}

VIOLATES(moving, swap_in_running, replica_swap_in, "r->pub.state == IFL_SWAPPED")
{
    request.pub.state = IFL_RUNNING;
    replica_swap_in(&idle, &request, 1);
}

/* ---- tiers that are really copied ---- */

static struct tier_places *one_place(void)
{
    const uint32_t blocks[2] = {0, 1};
    struct tier_places *of = tier_places_create(2);
    ifl_require(of && tier_places_store(of, blocks) == 0);
    return of;
}

VIOLATES(tiers, read_beyond, tier_places_read, "place < places->n")
{
    tier_places_read(one_place(), 1, 0);
}

VIOLATES(tiers, read_beyond_its_unit, tier_places_read, "i < places->unit_blocks")
{
    tier_places_read(one_place(), 0, 2);
}

VIOLATES(tiers, done_without_a_read, tier_places_done, "n_readers > 0")
{
    tier_places_done(one_place(), 0);
}

/* ---- which replica holds what ---- */

VIOLATES(holders, of_no_replica, holders_longest, "n > 0")
{
    static const struct holders none;
    int32_t n_tokens;
    holders_longest(&none, 0, 0, &request, &n_tokens);
}
