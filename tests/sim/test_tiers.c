/* Tiers below the device, in random set-ups of every policy.
 *
 * - Every request ends exactly once, and behind the last one the device is empty.
 * - A run with promised steps leaves the same records as one that plans each step, and as one that
 *   checks.
 * - A tier holds at most what it has room for, and finds what was stored and nothing else. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>

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
        .evicts = (enum tier_evict)(roll(dice, 0, 1) * roll(dice, 0, TIER_EVICTS_SLRU)),
        .begin_older = roll(dice, 0, 1),
        .keeps = roll(dice, 0, 2),
        .linked = roll(dice, 0, 4),
        .hit_frac = t == TIER_STORE && roll(dice, 0, 1) ? 0.4 : 0,
    };
    f->tier_links.spec[t] = (struct link_spec){.latency_ns = tier->linked ? 20000000 : 0,
                                               .bytes_per_s = 100 * roll(dice, 0, 1),
                                               .sharing = (enum link_sharing)roll(dice, 0, 3)};
}

/* What lies below the first tier may come there before a request starts. */
static void roll_prefetch(struct fixture *f, struct dice *dice)
{
    for (int t = TIER_HOST + 1; t < N_TIERS; t++) {
        struct tier_rules *tier = &f->tiers[t];
        if (!tier->on || roll(dice, 0, 1) == 0)
            continue;
        tier->unit_blocks = f->tiers[TIER_HOST].unit_blocks =
            tier->stores == TIER_STORES_EVICTED ? 1 : f->tiers[TIER_HOST].unit_blocks;
        tier->prefetch = (enum tier_prefetch)roll(dice, 1, 3);
        tier->prefetch_tokens = roll(dice, 0, 10);
        tier->prefetch_ns = roll(dice, 0, 3) * INT64_C(10000000);
        tier->prefetch_token_ns = 100000;
    }
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
    roll_prefetch(f, &dice);
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
    uint64_t n_flown = 0, n_found = 0, n_waited = 0, n_repeats = 0, n_left = 0, n_ahead = 0;
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
        n_ahead += skipping.capture.n_between_tiers;
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
                  n_repeats > n_flown && n_left > n_flown / 10 && n_ahead > n_flown / 4,
              "%llu set-ups, %llu found, %llu waited, %llu repeats, %llu left, %llu ahead",
              (unsigned long long)n_flown, (unsigned long long)n_found,
              (unsigned long long)n_waited, (unsigned long long)n_repeats,
              (unsigned long long)n_left, (unsigned long long)n_ahead);
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

/* ---- the rules by which units go, by pencil ---- */

static void offer_units(struct kv_tier *tier, const char *units)
{
    kv_tier_begin(tier);
    kv_tier_mark(tier);
    for (const char *unit = units; *unit; unit++)
        if (!kv_tier_renew(tier, (uint64_t)*unit, true))
            kv_tier_pass(tier);
    kv_tier_rewind(tier);
    for (; *units; units++)
        kv_tier_offer(tier, (uint64_t)*units, NULL);
}

static void offer_prompt(struct kv_tier *tier, const char *units)
{
    int32_t n;
    offer_units(tier, units);
    kv_tier_land(tier, kv_tier_take_coming(tier, &n));
}

/* Room for four. Prompts are offered one after the other, a unit a letter: those that are there are
 * used, the others come. `left`: what is there behind the last one. */
static void expect_left(enum tier_evict evicts, bool begin_older, const char *const *prompts,
                        const char *left)
{
    const struct tier_rules rules = {.on = true,
                                     .n_units = 4,
                                     .unit_blocks = 1,
                                     .store_after = 1,
                                     .evicts = evicts,
                                     .begin_older = begin_older,
                                     .keeps = true};
    struct kv_tier tier;
    char found[32] = "";
    cr_assert_eq(kv_tier_create(&tier, &rules), 0);
    for (; *prompts; prompts++)
        offer_prompt(&tier, *prompts);
    for (char unit = 'A'; unit <= 'Z'; unit++)
        if (kv_tier_has(&tier, (uint64_t)unit))
            strncat(found, &unit, 1);
    cr_expect_str_eq(found, left, "rule %d, begin older %d: %s is left", evicts, begin_older,
                     found);
    kv_tier_destroy(&tier);
}

/* Room for two; a load reads the unit that each rule evicts first, so that the other one goes.
 * While loads read both, nothing is stored. */
Test(tiers, loads_hold)
{
    for (int evicts = TIER_EVICTS_LRU; evicts <= TIER_EVICTS_SLRU; evicts++) {
        const struct tier_rules rules = {.on = true,
                                         .n_units = 2,
                                         .unit_blocks = 1,
                                         .store_after = 1,
                                         .evicts = (enum tier_evict)evicts,
                                         .keeps = true};
        const bool last = evicts == TIER_EVICTS_MRU || evicts == TIER_EVICTS_FILO;
        const uint64_t first = last ? 'B' : 'A', second = last ? 'A' : 'B';
        struct kv_tier tier;
        cr_assert_eq(kv_tier_create(&tier, &rules), 0);
        offer_prompt(&tier, "A");
        offer_prompt(&tier, "B");
        cr_assert_eq(kv_tier_pin(&tier, 'C'), TIER_NONE);
        const int32_t slot = kv_tier_pin(&tier, first), other = kv_tier_pin(&tier, second);
        cr_assert_eq(kv_tier_pin(&tier, first), slot, "a second load of it");
        offer_prompt(&tier, "C");
        cr_expect_not(kv_tier_has(&tier, 'C'), "rule %d", evicts);
        kv_tier_let_go(&tier, slot);
        kv_tier_let_go(&tier, other);
        offer_prompt(&tier, "C");
        cr_expect(kv_tier_has(&tier, first) && kv_tier_has(&tier, 'C'), "rule %d", evicts);
        cr_expect_not(kv_tier_has(&tier, second), "rule %d", evicts);
        kv_tier_let_go(&tier, slot);
        offer_prompt(&tier, "D");
        cr_expect_not(kv_tier_has(&tier, last ? 'C' : first), "rule %d", evicts);
        kv_tier_destroy(&tier);
    }
}

/* Had before, by another one, and stored since: what goes as E comes. */
Test(tiers, rules)
{
    static const char *const once_more[] = {"AB", "AB", "CD", "E", NULL},
                             *const often[] = {"AB", "AB", "AB", "CD", "CD", "E", NULL},
                             *const later[] = {"AB", "CD", "AB", "E", NULL};
    static const struct {
        enum tier_evict evicts;
        const char *once_more, *often, *later;
    } rules[] = {
        {TIER_EVICTS_LRU, "ACDE", "ACDE", "ABCE"},  /* B; B; D: of CD the end is older */
        {TIER_EVICTS_LFU, "ABCE", "ABCE", "ABCE"},  /* D, which fewer have had */
        {TIER_EVICTS_FIFO, "ACDE", "ACDE", "ACDE"}, /* B, of AB the end */
        {TIER_EVICTS_MRU, "ABDE", "ABDE", "BCDE"},  /* C; C; A */
        {TIER_EVICTS_FILO, "ABDE", "ABDE", "ABDE"}, /* C, of CD the beginning */
        {TIER_EVICTS_SLRU, "ABCE", "ACDE", "ABCE"}, /* D; all had twice, as LRU; D */
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        expect_left(rules[i].evicts, false, once_more, rules[i].once_more);
        expect_left(rules[i].evicts, false, often, rules[i].often);
        expect_left(rules[i].evicts, false, later, rules[i].later);
    }
}

/* A prompt that goes on where another one ends: its new unit is older than those in front of it,
 * although it comes after they were used. */
Test(tiers, prompt_grows)
{
    static const char *const turns[] = {"AB", "ABC", "D", "E", NULL};
    expect_left(TIER_EVICTS_LRU, false, turns, "ABDE");
    expect_left(TIER_EVICTS_LFU, false, turns, "ABDE");
    expect_left(TIER_EVICTS_FIFO, false, turns, "ACDE"); /* B, as AB was stored first */
    expect_left(TIER_EVICTS_SLRU, false, turns, "ABDE");
    expect_left(TIER_EVICTS_LRU, true, turns, "ACDE"); /* LMCache puts C behind the use of AB */
}

/* ABEF takes the places of C and D, whatever the rule, and its G finds none. H goes by the rule
 * again, for units that were passed meanwhile, too. */
Test(tiers, prompt_keeps_its_own)
{
    static const char *const longer[] = {"AB", "CD", "ABEF", NULL},
                             *const too_long[] = {"AB", "CD", "ABEF", "ABEFG", NULL},
                             *const behind[] = {"AB", "CD", "ABEF", "ABEFG", "H", NULL};
    static const char *const left[] = {
        [TIER_EVICTS_LRU] = "ABEH",  [TIER_EVICTS_LFU] = "ABEH",  [TIER_EVICTS_FIFO] = "AEFH",
        [TIER_EVICTS_MRU] = "BEFH",  [TIER_EVICTS_FILO] = "ABFH", /* EF came last, its beginning */
        [TIER_EVICTS_SLRU] = "ABEH",                              /* behind it */
    };
    for (int evicts = TIER_EVICTS_LRU; evicts <= TIER_EVICTS_SLRU; evicts++) {
        expect_left((enum tier_evict)evicts, false, longer, "ABEF");
        expect_left((enum tier_evict)evicts, false, too_long, "ABEF");
        expect_left((enum tier_evict)evicts, true, too_long, "ABEF");
        expect_left((enum tier_evict)evicts, false, behind, left[evicts]);
    }
}

/* Of the prompts of one transfer that of the later request is used later; of a prompt that is
 * longer than the tier the beginning is stored. */
Test(tiers, one_transfer)
{
    const struct tier_rules rules = {
        .on = true, .n_units = 4, .unit_blocks = 1, .store_after = 1, .keeps = true};
    struct kv_tier tier;
    int32_t n;
    cr_assert_eq(kv_tier_create(&tier, &rules), 0);
    offer_units(&tier, "AB");
    offer_units(&tier, "CD");
    kv_tier_land(&tier, kv_tier_take_coming(&tier, &n));
    offer_prompt(&tier, "E"); /* in the place of B */
    cr_expect(kv_tier_has(&tier, 'A') && kv_tier_has(&tier, 'C') && kv_tier_has(&tier, 'D'));
    offer_prompt(&tier, "FGHIJ");
    cr_expect(kv_tier_has(&tier, 'F') && kv_tier_has(&tier, 'I'));
    cr_expect_not(kv_tier_has(&tier, 'J'));
    kv_tier_destroy(&tier);
}

/* LMCache 0.5.6 puts chunks from the beginning of a prompt on, and touches them from its end on. */
Test(tiers, rules_of_lmcache)
{
    static const char *const put[] = {"AB", "CD", "E", NULL}, *const touched[] = {"AB", "CD", "AB",
                                                                                  "CD", "E",  NULL};
    expect_left(TIER_EVICTS_LRU, true, put, "BCDE");      /* A */
    expect_left(TIER_EVICTS_LRU, true, touched, "ACDE");  /* B */
    expect_left(TIER_EVICTS_LFU, true, put, "BCDE");      /* A */
    expect_left(TIER_EVICTS_LFU, true, touched, "ACDE");  /* B, of four that were had twice */
    expect_left(TIER_EVICTS_FIFO, true, put, "BCDE");     /* A */
    expect_left(TIER_EVICTS_FIFO, true, touched, "BCDE"); /* A */
    expect_left(TIER_EVICTS_MRU, true, put, "ABCE");      /* D */
    expect_left(TIER_EVICTS_MRU, true, touched, "ABDE");  /* C */
}

static void evict_prompt(struct kv_tier *tier, const char *units)
{
    int32_t n;
    for (; *units; units++)
        kv_tier_put(tier, (uint64_t)*units, true, NULL);
    kv_tier_land(tier, kv_tier_take_coming(tier, &n));
}

/* Room for four units of the prompts AB and CD, each evicted from its end on; then E comes, A is
 * used if it is there, CD evicted once more, and F and G come. */
static void expect_left_of_evicted(bool begin_older, const char *left)
{
    const struct tier_rules rules = {.on = true,
                                     .n_units = 4,
                                     .unit_blocks = 1,
                                     .store_after = 1,
                                     .stores = TIER_STORES_EVICTED,
                                     .begin_older = begin_older,
                                     .keeps = true};
    static const char *const evicted[] = {"BA", "DC", "E", "DC", "F", "G", NULL};
    struct kv_tier tier;
    char found[32] = "";
    cr_assert_eq(kv_tier_create(&tier, &rules), 0);
    for (size_t i = 0; evicted[i]; i++) {
        evict_prompt(&tier, evicted[i]);
        for (char unit = 'A'; unit <= 'G'; unit++)
            if (kv_tier_has(&tier, (uint64_t)unit))
                strncat(found, &unit, 1);
        strcat(found, " ");
        if (i == 2) {
            kv_tier_begin(&tier);
            kv_tier_use(&tier, 'A');
        }
    }
    cr_expect_str_eq(found, left, "begin older %d: %s is left", begin_older, found);
    kv_tier_destroy(&tier);
}

/* The end of a prompt goes before its beginning, as it does where units are stored as they are
 * computed; what is evicted once more was used then. */
Test(tiers, evicted)
{
    expect_left_of_evicted(false, "AB ABCD ACDE ACDE ACDF CDFG "); /* B; E; A, before CD */
    expect_left_of_evicted(true, "AB ABCD BCDE BCDE CDEF CDFG ");  /* A; B; E */
}

/* A tier of 200 million units takes no memory for those that were never stored. */
Test(tiers, large)
{
    const struct tier_rules rules = {.on = true,
                                     .n_units = 200000000,
                                     .unit_blocks = 1,
                                     .store_after = 1,
                                     .evicts = TIER_EVICTS_LFU,
                                     .keeps = true};
    struct rusage before, after;
    struct kv_tier tier;
#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("the sanitizer writes a byte for each eight that are allocated");
#endif
    getrusage(RUSAGE_SELF, &before);
    cr_assert_eq(kv_tier_create(&tier, &rules), 0);
    offer_prompt(&tier, "ABCDEFGH");
    getrusage(RUSAGE_SELF, &after);
    cr_assert(kv_tier_has(&tier, 'H'));
    cr_expect(after.ru_minflt - before.ru_minflt < 1000, "%ld pages were touched",
              after.ru_minflt - before.ru_minflt);
    kv_tier_destroy(&tier);
}
