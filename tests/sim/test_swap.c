/* Swaps beside steps, in random set-ups of vLLM v0's scheduler.
 *
 * - Every request ends exactly once, and behind the last one device and host are empty.
 * - A run with promised steps leaves the same records as one that plans each step, and as one that
 *   checks.
 * - Of each copy no more is hidden than it takes.
 * - No more requests fail than where swaps are part of steps, but by chance: a copy takes time, in
 *   which host memory is full, so that single set-ups differ either way. Of the requests that fail
 *   in one of the two alone, those of either are within three standard errors of half. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flown.h"
#include "random_setup.h"

enum { N_SETUPS = 30000 };

static void roll_swaps(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 42), 0};
    roll_setup(f, seed);
    f->beams.search = false;
    f->check_blocks = false;
    f->swaps_apart = true;
    f->swap_link =
        (struct swap_link){.out_ns = 1000000 * (int64_t)roll(&dice, 0, 3) * roll(&dice, 0, 100),
                           .in_ns = 1000000 * (int64_t)roll(&dice, 0, 3) * roll(&dice, 0, 100),
                           .block_bytes = 16};
    if (roll(&dice, 0, 2) == 0)
        f->patience = (struct patience){.process = PATIENCE_EXPONENTIAL, .mean_s = 20};
}

/* False: nothing is swapped, or the configuration would be refused. */
static bool swaps(const struct fixture *f)
{
    return strcmp(f->modules[IFL_BATCHING].policy->name, "prefill-first") == 0 &&
           strcmp(f->modules[IFL_PREEMPT].policy->name, "tail") == 0 &&
           f->limits.n_host_blocks > 0 && f->overlap.depth <= 1 && !f->speculation.on;
}

static void check_same(const struct fixture *a, const struct fixture *b, uint64_t seed)
{
    cr_assert_eq(a->capture.n_moves, b->capture.n_moves, "seed %llu", (unsigned long long)seed);
    cr_assert_eq(a->capture.hidden_ns, b->capture.hidden_ns, "seed %llu", (unsigned long long)seed);
    flown_same_requests(a, b, seed);
}

static uint64_t count_failed(const struct fixture *f)
{
    uint64_t n = 0;
    for (size_t i = 0; i < f->capture.n_requests; i++)
        n += f->capture.requests[i].status == IFL_FAILED;
    return n;
}

Test(swap, random_setups, .timeout = 600)
{
    const uint64_t first = getenv("FIRST") ? strtoull(getenv("FIRST"), NULL, 10) : 0;
    uint64_t n_flown = 0, n_moves = 0, n_repeats = 0, n_left = 0, n_hidden = 0;
    uint64_t n_more = 0, n_fewer = 0;
    for (uint64_t seed = first; seed < first + N_SETUPS; seed++) {
        struct fixture skipping, planning, checking, in_steps;
        roll_swaps(&skipping, seed);
        roll_swaps(&planning, seed);
        roll_swaps(&checking, seed);
        roll_swaps(&in_steps, seed);
        planning.no_steady_runs = true;
        checking.check_steady = true;
        in_steps.swaps_apart = false;
        if (swaps(&skipping)) {
            flown_well(&skipping, seed);
            flown_well(&planning, seed);
            flown_well(&checking, seed);
            flown_well(&in_steps, seed);
            flown_each_once(&skipping, seed);
            check_same(&skipping, &planning, seed);
            check_same(&skipping, &checking, seed);
            n_flown++;
        }
        n_repeats += skipping.n_repeats;
        n_moves += skipping.capture.n_moves;
        n_hidden += skipping.capture.hidden_ns > 0;
        for (size_t i = 0; i < skipping.capture.n_requests; i++) {
            const struct ifl_request_record *r = &skipping.capture.requests[i];
            n_left += r->status == IFL_ABORTED && r->swap_outs > 0;
        }
        const uint64_t n_failed = count_failed(&skipping), n_in_steps = count_failed(&in_steps);
        n_more += n_failed > n_in_steps ? n_failed - n_in_steps : 0;
        n_fewer += n_failed < n_in_steps ? n_in_steps - n_failed : 0;
        fixture_free(&skipping);
        fixture_free(&planning);
        fixture_free(&checking);
        fixture_free(&in_steps);
    }
    cr_assert(n_flown > N_SETUPS / 60 && n_moves > n_flown && n_repeats > n_flown &&
                  n_left > n_flown / 100 && n_hidden > n_flown / 20,
              "%llu set-ups, %llu copies, %llu repeats, %llu left, %llu with hidden ones",
              (unsigned long long)n_flown, (unsigned long long)n_moves,
              (unsigned long long)n_repeats, (unsigned long long)n_left,
              (unsigned long long)n_hidden);
    cr_assert((double)n_more <= (double)n_fewer + 3 * sqrt((double)(n_more + n_fewer)),
              "%llu requests fail more, %llu fewer than with swaps in steps",
              (unsigned long long)n_more, (unsigned long long)n_fewer);
}
