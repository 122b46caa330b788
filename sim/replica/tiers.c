#include "replica/tiers.h"

#include <stdlib.h>

/* A plan cannot fail here: it has no more than a replica's blocks to load. */
IFL_APART bool tiers_reserve_ask(struct tiers *tiers)
{
    return array_room(&tiers->asked, tiers->n_asked, &tiers->cap_asked, 64, sizeof *tiers->asked) ==
           0;
}

void tiers_list_load(struct tiers *tiers, struct tier_places *places, int32_t place,
                     const struct live_request *r, int32_t n, int32_t end)
{
    const size_t n_after = tiers->n_copies + (size_t)(end - n);
    ifl_require(place >= 0);
    if (n_after > tiers->cap_copies) {
        const size_t cap = 2 * n_after + 64;
        ifl_require(array_grow(&tiers->copies, tiers->n_copies, cap, sizeof *tiers->copies) == 0);
        tiers->cap_copies = cap;
    }
    for (int32_t i = n; i < end; i++)
        tiers->copies[tiers->n_copies++] = (struct ifl_copy){
            tier_places_read(places, place, i - end + places->unit_blocks), r->blocks[i]};
}

void tiers_note_found(struct tiers *tiers, int tier, uint64_t identity)
{
    ifl_require(array_room(&tiers->found, tiers->n_found, &tiers->cap_found, 64,
                           sizeof *tiers->found) == 0);
    tiers->found[tiers->n_found++] = (struct tier_found){tier, identity};
}

void tiers_pin(struct tiers *tiers, int tier, uint64_t identity)
{
    ifl_require(
        array_room(&tiers->pins, tiers->n_pins, &tiers->cap_pins, 64, sizeof *tiers->pins) == 0);
    const int32_t slot = kv_tier_pin(tiers->of[tier], identity);
    if (slot != TIER_NONE)
        tiers->pins[tiers->n_pins++] = (struct tier_pin){tier, slot};
}

void tiers_destroy(struct tiers *tiers)
{
    free(tiers->asked);
    free(tiers->copies);
    free(tiers->pins);
    free(tiers->found);
    *tiers = (struct tiers){0};
}
