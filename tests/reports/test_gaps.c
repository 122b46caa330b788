#include <criterion/criterion.h>
#include <math.h>

#include "inflight/random.h"
#include "record/gaps.h"
#include "tables/sort.h"

static struct ifl_error error;

Test(gaps, are_exact_while_there_is_room)
{
    struct gaps gaps;
    struct distribution of;
    gaps_init(&gaps, 16);
    cr_assert_eq(gaps_add(&gaps, 30, 2, &error), IFL_OK);
    cr_assert_eq(gaps_add(&gaps, 10, 1, &error), IFL_OK);
    cr_assert_eq(gaps_add(&gaps, 20, 1, &error), IFL_OK);
    cr_assert_eq(gaps_describe(&gaps, &of, &error), IFL_OK);
    cr_expect_eq(of.at_ns[QUANTILE_STEPS / 2], 25, "10 20 30 30: the middle is 25");
    cr_expect_eq(of.mean_ns, 22.5);
    gaps_finish(&gaps);
}

Test(gaps, equal_ones_never_cost_precision)
{
    struct gaps gaps;
    struct distribution of;
    gaps_init(&gaps, 1 << 14);
    for (int i = 0; i < 70000; i++)
        cr_assert_eq(gaps_add(&gaps, 20000000 + i % 7, 1, &error), IFL_OK);
    cr_expect_eq(gaps.n_gaps, 70000);
    cr_assert_eq(gaps_describe(&gaps, &of, &error), IFL_OK);
    for (size_t i = 0; i < QUANTILE_STEPS; i++)
        cr_assert_eq(of.at_ns[i], 20000000 + floor((double)i * 7 / QUANTILE_STEPS), "at %zu", i);
    gaps_finish(&gaps);
}

/* Gaps of all magnitudes from 1 ns to 10 minutes, most of them between 10 and 30 ms. */
static int64_t any_gap(uint64_t i)
{
    const uint64_t draw = ifl_mix(i);
    return (int64_t)(i % 2 ? 10000000 + draw % 20000000 : draw >> 25 >> i % 39) + 1;
}

/* More distinct gaps than room: quantiles may be off by 4e-6; mean and count must be exact. */
Test(gaps, are_known_to_four_millionths_when_there_are_many)
{
    enum { N = 500000 };
    static int64_t exact[N];
    struct gaps gaps;
    struct distribution binned, true_one;
    gaps_init(&gaps, 1024);
    for (uint64_t i = 0; i < N; i++) {
        exact[i] = any_gap(i);
        cr_assert_eq(gaps_add(&gaps, exact[i], 1, &error), IFL_OK);
    }
    cr_assert_eq(gaps_describe(&gaps, &binned, &error), IFL_OK);
    cr_assert_eq(sort_by_key(exact, NULL, N, &error), IFL_OK);
    quantile_describe(exact, NULL, N, &true_one);
    cr_expect(gaps.binned);
    cr_expect_eq(gaps.n_gaps, N);
    cr_expect_eq(binned.mean_ns, true_one.mean_ns);
    for (size_t i = 0; i < QUANTILE_GRID; i++)
        cr_assert_leq(fabs(binned.at_ns[i] - true_one.at_ns[i]), 4e-6 * true_one.at_ns[i],
                      "quantile %zu: %.1f, not %.1f", i, binned.at_ns[i], true_one.at_ns[i]);
    gaps_finish(&gaps);
}

/* A gap of 39 hours and a nanosecond fits no pair, and 65,536 requests do not fit into one. */
Test(gaps, beyond_a_pair_are_kept)
{
    const int64_t longest_ns = PAIR_MOST_NS, beyond_ns = longest_ns + 1;
    struct gaps gaps;
    struct distribution of;
    gaps_init(&gaps, GAPS_MAX_PAIRS);
    cr_assert_eq(gaps_add(&gaps, 10, 2 * PAIR_MOST_TIMES + 1, &error), IFL_OK);
    cr_assert_eq(gaps_add(&gaps, longest_ns, 2 * PAIR_MOST_TIMES + 1, &error), IFL_OK);
    cr_assert_eq(gaps_describe(&gaps, &of, &error), IFL_OK);
    cr_expect_not(gaps.binned);
    cr_expect_eq(of.mean_ns, ((double)longest_ns + 10) / 2);
    cr_expect_eq(of.at_ns[QUANTILE_STEPS / 2 - 1], 10);
    cr_expect_eq(of.at_ns[QUANTILE_STEPS / 2 + 1], (double)longest_ns);
    gaps_finish(&gaps);
    for (int64_t requests = 1; requests <= PAIR_MOST_TIMES + 1; requests += PAIR_MOST_TIMES) {
        gaps_init(&gaps, GAPS_MAX_PAIRS);
        cr_assert_eq(gaps_add(&gaps, beyond_ns, requests, &error), IFL_OK);
        cr_assert_eq(gaps_add(&gaps, 10, requests, &error), IFL_OK);
        cr_assert_eq(gaps_describe(&gaps, &of, &error), IFL_OK);
        cr_expect(gaps.binned);
        cr_expect_eq(of.mean_ns, ((double)beyond_ns + 10) / 2);
        cr_expect_eq(of.at_ns[0], 10);
        cr_expect_leq(fabs(of.at_ns[QUANTILE_GRID - 1] - (double)beyond_ns),
                      4e-6 * (double)beyond_ns);
        gaps_finish(&gaps);
    }
}

/* The same gaps in reverse order, and several in one call, give the same bytes. */
Test(gaps, come_in_any_order)
{
    enum { N = 100000, AT_ONCE = 50 };
    struct gaps forth, back;
    struct distribution of_forth, of_back;
    int64_t some[AT_ONCE], end_ns[AT_ONCE];
    const struct ifl_step_record first = {.start_ns = 0};
    const struct ifl_stretch_record of = {
        .first = &first, .n = AT_ONCE, .n_requests = 3, .duration_ns = some, .end_ns = end_ns};
    gaps_init(&forth, 1024);
    gaps_init(&back, 1024);
    for (uint64_t i = 0; i < N; i++)
        cr_assert_eq(gaps_add(&forth, any_gap(i), 3, &error), IFL_OK);
    for (uint64_t i = N; i > 0; i -= AT_ONCE) {
        int64_t total_ns = 0;
        for (uint64_t k = 0; k < AT_ONCE; k++)
            end_ns[k] = total_ns += some[k] = any_gap(i - 1 - k);
        cr_assert_eq(gaps_add_stretch(&back, &of, &error), IFL_OK);
    }
    cr_assert_eq(gaps_describe(&forth, &of_forth, &error), IFL_OK);
    cr_assert_eq(gaps_describe(&back, &of_back, &error), IFL_OK);
    cr_expect(forth.binned && back.binned);
    cr_expect_arr_eq(of_forth.at_ns, of_back.at_ns, sizeof of_forth.at_ns);
    cr_expect_eq(of_forth.mean_ns, of_back.mean_ns);
    gaps_finish(&forth);
    gaps_finish(&back);
}

/* Gaps that are known to lengthen are copied at once: into the room that is left, and on. */
Test(gaps, that_lengthen_are_appended_at_once)
{
    enum { N = 999, AT_ONCE = 7 };
    struct gaps one_by_one, at_once;
    struct distribution of_one_by_one, of_at_once;
    const struct ifl_step_record first = {.start_ns = 0};
    gaps_init(&one_by_one, 4096);
    gaps_init(&at_once, 4096);
    for (int64_t i = 0; i < N; i++) {
        int64_t gap_ns[AT_ONCE], end_ns[AT_ONCE], at_ns = 0;
        for (int64_t k = 0; k < AT_ONCE; k++) {
            gap_ns[k] = 1000 + i % 10 + k * (1 + i % 3);
            end_ns[k] = at_ns += gap_ns[k];
            cr_assert_eq(gaps_add(&one_by_one, gap_ns[k], 3, &error), IFL_OK);
        }
        const struct ifl_stretch_record of = {.first = &first,
                                              .n = AT_ONCE,
                                              .n_requests = 3,
                                              .duration_ns = gap_ns,
                                              .lengthens = true,
                                              .end_ns = end_ns};
        cr_assert_eq(gaps_add_stretch(&at_once, &of, &error), IFL_OK);
    }
    cr_expect_eq(at_once.n_gaps, one_by_one.n_gaps);
    cr_assert_eq(gaps_describe(&one_by_one, &of_one_by_one, &error), IFL_OK);
    cr_assert_eq(gaps_describe(&at_once, &of_at_once, &error), IFL_OK);
    cr_expect_arr_eq(of_one_by_one.at_ns, of_at_once.at_ns, sizeof of_at_once.at_ns);
    cr_expect_eq(of_one_by_one.mean_ns, of_at_once.mean_ns);
    gaps_finish(&one_by_one);
    gaps_finish(&at_once);
}

Test(gaps, counts_beyond_32_bits)
{
    struct gaps gaps;
    struct distribution of;
    gaps_init(&gaps, 16);
    cr_assert_eq(gaps_add(&gaps, 5, 3LL << 32, &error), IFL_OK);
    cr_assert_eq(gaps_add(&gaps, 9, 1LL << 32, &error), IFL_OK);
    cr_assert_eq(gaps_describe(&gaps, &of, &error), IFL_OK);
    cr_expect_eq(of.mean_ns, 6);
    cr_expect_eq(of.at_ns[149], 5, "three quarters of them are 5");
    cr_expect_eq(of.at_ns[151], 9);
    gaps_finish(&gaps);
}

static uint64_t times_of(const int64_t *value, const uint32_t *count, size_t n, int64_t wanted)
{
    uint64_t times = 0;
    for (size_t i = 0; i < n; i++)
        times += value[i] == wanted ? count[i] : 0;
    return times;
}

static void add_one(struct histogram *histogram, int64_t value, uint32_t times)
{
    cr_assert_eq(histogram_add(histogram, &value, 1, &times, 0, &error), IFL_OK);
}

Test(histogram, counts_beyond_32_bits)
{
    struct histogram histogram = {0};
    int64_t *value;
    uint32_t *count;
    size_t n;
    for (int i = 0; i < 5; i++) {
        add_one(&histogram, 7, UINT32_MAX);
        add_one(&histogram, 7, 1);
    }
    add_one(&histogram, 8, 4);
    cr_assert_eq(histogram_list(&histogram, &value, &count, &n, &error), IFL_OK);
    cr_expect_eq(times_of(value, count, n, 7), 5ULL << 32);
    cr_expect_eq(times_of(value, count, n, 8), 4);
    free(value);
    free(count);
    histogram_finish(&histogram);
}

Test(histogram, has_a_bin_for_every_value)
{
    static const int64_t edge[] = {0, 1, (2 << HISTOGRAM_BITS) - 1, 2 << HISTOGRAM_BITS, INT64_MAX};
    enum { N = sizeof edge / sizeof *edge };
    struct histogram histogram = {0};
    int64_t *value;
    uint32_t *count;
    size_t n;
    for (size_t i = 0; i < N; i++)
        add_one(&histogram, edge[i], 1);
    cr_assert_eq(histogram_list(&histogram, &value, &count, &n, &error), IFL_OK);
    cr_assert_eq(n, N);
    for (size_t i = 0; i < N; i++)
        cr_expect_leq(fabs((double)value[i] - (double)edge[i]), 4e-6 * (double)edge[i]);
    free(value);
    free(count);
    histogram_finish(&histogram);
}

/* Gaps from one nanosecond to centuries, rising and falling, with some repetitions. */
static int64_t draw_gap(uint64_t i)
{
    const uint64_t draw = ifl_draw(6, IFL_DRAW_POLICY, i, 0);
    return (int64_t)((draw | 1) >> (2 + i / 7 * 11 % 62)) + (int64_t)(i % 3);
}

static void expect_same(const struct histogram *a, const struct histogram *b, size_t least)
{
    int64_t *value[2];
    uint32_t *count[2];
    size_t n[2];
    cr_assert_eq(histogram_list(a, &value[0], &count[0], &n[0], &error), IFL_OK);
    cr_assert_eq(histogram_list(b, &value[1], &count[1], &n[1], &error), IFL_OK);
    cr_assert_eq(n[0], n[1]);
    cr_expect_gt(n[0], least);
    cr_expect_arr_eq(value[0], value[1], n[0] * sizeof *value[0]);
    cr_expect_arr_eq(count[0], count[1], n[0] * sizeof *count[0]);
    for (int i = 0; i < 2; i++) {
        free(value[i]);
        free(count[i]);
    }
}

Test(histogram, adds_many_as_one_by_one)
{
    enum { N = 20000 };
    static int64_t gap_ns[N];
    static uint32_t times[N];
    for (size_t apart = 0; apart <= 1; apart++) {
        struct histogram all = {0}, each = {0};
        for (uint64_t i = 0; i < N; i++) {
            gap_ns[i] = draw_gap(i);
            times[i] = 30000 + (uint32_t)i;
            add_one(&each, gap_ns[i], times[i * apart]);
        }
        cr_assert_eq(histogram_add(&all, gap_ns, N, times, apart, &error), IFL_OK);
        expect_same(&all, &each, N / 2);
        histogram_finish(&all);
        histogram_finish(&each);
    }
}
