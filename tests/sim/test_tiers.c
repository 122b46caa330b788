/* Tiers below the device, in random set-ups of every policy.
 *
 * - Every request ends exactly once, and behind the last one the device is empty.
 * - A run with promised steps leaves the same records as one that plans each step, and as one that
 *   checks.
 * - A tier holds at most what it has room for, and finds what was stored and nothing else. */
#include <criterion/criterion.h>
#include <string.h>

#include "flown.h"
#include "random_setup.h"

enum { N_SETUPS = 12000 };

static void roll_tier(struct fixture *f, struct dice *dice, int t)
{
    struct tier_rules *tier = &f->tiers[t];
    const bool evicted = roll(dice, 0, 2) == 0;
    *tier = (struct tier_rules){
        .on = true,
        .n_units = roll(dice, 1, 60),
        .unit_blocks = evicted ? 1 : roll(dice, 1, 3),
        .min_tokens = roll(dice, 0, 1) * roll(dice, 1, 20),
        .store_after = evicted ? 1 : roll(dice, 1, 2),
        .stores = evicted ? TIER_STORES_EVICTED : TIER_STORES_COMPUTED,
        .loads = (enum tier_load)roll(dice, 0, 2),
        .answers = roll(dice, 0, 1),
        .keeps = roll(dice, 0, 2),
        .linked = roll(dice, 0, 4),
        .hit_frac = t == TIER_STORE && roll(dice, 0, 1) ? 0.4 : 0,
    };
    f->tier_links.spec[t] = (struct link_spec){.latency_ns = tier->linked ? 20000000 : 0,
                                               .bytes_per_s = 100 * roll(dice, 0, 1),
                                               .sharing = (enum link_sharing)roll(dice, 0, 3)};
}

/* False: the set-up has no cache that could lie above tiers. */
static bool roll_tiers(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 41), 0};
    roll_setup(f, seed);
    f->beams.search = false;
    f->tier_links.block_bytes = 1;
    f->tier_links.n_layers = roll(&dice, 1, 4);
    f->check_blocks = false;
    for (int t = 0; t < N_TIERS; t++)
        if (t == TIER_HOST || roll(&dice, 0, 2) == 0)
            roll_tier(f, &dice, t);
    /* best-that-fit cannot take what a loaded request holds, and may stall. */
    const bool stalls = strcmp(f->modules[IFL_BATCHING].policy->name, "best-that-fit") == 0;
    for (int t = 0; stalls && t < N_TIERS; t++)
        if (f->tiers[t].loads == TIER_LOADS_APART)
            f->tiers[t].loads = TIER_LOADS_BEFORE;
    if (roll(&dice, 0, 2) == 0)
        f->patience = (struct patience){.process = PATIENCE_EXPONENTIAL, .mean_s = 20};
    return f->prefix_cache != PREFIX_CACHE_NONE;
}

static void check_requests(const struct fixture *f, uint64_t seed)
{
    flown_each_once(f, seed);
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        const struct ifl_request_record *r = &f->capture.requests[i];
        int32_t n_found = 0;
        for (int t = 0; t < N_TIERS; t++)
            n_found += r->tier_tokens[t];
        cr_assert(n_found <= r->cached_tokens, "seed %llu: %d tokens of tiers, %d in all",
                  (unsigned long long)seed, n_found, r->cached_tokens);
    }
}

Test(tiers, random_setups, .timeout = 600)
{
    uint64_t n_flown = 0, n_found = 0, n_waited = 0, n_repeats = 0, n_left = 0;
    for (uint64_t seed = 0; seed < N_SETUPS; seed++) {
        struct fixture skipping, planning, checking;
        const bool cached = roll_tiers(&skipping, seed);
        roll_tiers(&planning, seed);
        roll_tiers(&checking, seed);
        planning.no_steady_runs = true;
        checking.check_steady = true;
        if (cached) {
            flown_well(&skipping, seed);
            flown_well(&planning, seed);
            flown_well(&checking, seed);
            check_requests(&skipping, seed);
            flown_same_steps(&skipping, &planning, seed);
            flown_same_steps(&skipping, &checking, seed);
            n_flown++;
        }
        n_repeats += skipping.n_repeats;
        for (size_t i = 0; i < skipping.capture.n_requests; i++) {
            const struct ifl_request_record *r = &skipping.capture.requests[i];
            n_found += r->tier_tokens[TIER_HOST] > 0;
            n_waited += r->load_exposed_ns > 0;
            n_left += r->status == IFL_ABORTED;
        }
        fixture_free(&skipping);
        fixture_free(&planning);
        fixture_free(&checking);
    }
    cr_assert(n_flown > N_SETUPS / 2 && n_found > n_flown && n_waited > n_flown / 2 &&
                  n_repeats > n_flown && n_left > n_flown / 10,
              "%llu set-ups, %llu found, %llu waited, %llu repeats, %llu left",
              (unsigned long long)n_flown, (unsigned long long)n_found,
              (unsigned long long)n_waited, (unsigned long long)n_repeats,
              (unsigned long long)n_left);
}

/* ---- the table against a list ---- */

/* LRU by pencil: room for three; units come in order, and each use moves one to the end. */
Test(tiers, table)
{
    const struct tier_rules rules = {
        .on = true, .n_units = 3, .unit_blocks = 1, .store_after = 1, .keeps = true};
    struct kv_tier tier;
    int32_t n;
    cr_assert_eq(kv_tier_create(&tier, &rules), 0);
    for (uint64_t unit = 1; unit <= 3; unit++) {
        kv_tier_begin(&tier);
        kv_tier_offer(&tier, unit, NULL);
        cr_assert_not(kv_tier_has(&tier, unit), "on its way it cannot be found");
        kv_tier_land(&tier, kv_tier_take_coming(&tier, &n));
        cr_assert_eq(n, 1);
    }
    kv_tier_begin(&tier);
    kv_tier_use(&tier, 1);
    kv_tier_begin(&tier);
    kv_tier_offer(&tier, 4, NULL); /* in the place of 2 */
    kv_tier_offer(&tier, 5, NULL); /* of 3 */
    kv_tier_offer(&tier, 6, NULL); /* of 1 */
    kv_tier_offer(&tier, 7, NULL); /* of none: the others are on their way */
    const int32_t chain = kv_tier_take_coming(&tier, &n);
    cr_assert_eq(n, 3);
    kv_tier_land(&tier, chain);
    for (uint64_t unit = 1; unit <= 7; unit++)
        cr_assert_eq(kv_tier_has(&tier, unit), unit >= 4 && unit <= 6);
    kv_tier_destroy(&tier);
}
